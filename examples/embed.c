/* SPDX-License-Identifier: Apache-2.0
 *
 * embed.c: the library in forty lines: opens a model, embeds three sentences, prints how similar they are to the first.
 *
 *     cc embed.c $(pkg-config --cflags --libs lath) -o embed && ./embed path/to/all-MiniLM-L6-v2
 *
 * A library that is not in the system's folders is found with LD_LIBRARY_PATH or -Wl,-rpath.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lath/lath.h>

int main(int argc, char **argv)
{
    static const char *const sentences[] = {"The cat sleeps on the sofa.", "A kitten naps on the couch.",
                                            "Stocks fell sharply on Monday."};
    enum { N = 3 };
    lath_runtime *rt = NULL;
    lath_model *model = NULL;
    lath_embedder *e = NULL;
    lath_error err = {.msg = "out of memory"};
    lath_text texts[N];
    float *v = NULL;
    int rc = 1;

    if (argc != 2) {
        fprintf(stderr, "usage: embed MODEL_DIRECTORY\n");
        return 2;
    }
    for (int i = 0; i < N; i++) texts[i] = (lath_text){sentences[i], strlen(sentences[i])};

    if (lath_runtime_create(NULL, &rt, &err) != LATH_OK) goto done;
    if (lath_model_open(rt, argv[1], NULL, &model, &err) != LATH_OK) goto done;
    if (lath_embedder_create(model, NULL, &e, &err) != LATH_OK) goto done;
    size_t d = (size_t)lath_embedder_dim(e);
    v = malloc(N * d * sizeof(*v)); /* [N, d] */
    if (!v) goto done;
    if (lath_embed(e, texts, N, v, NULL, &err) != LATH_OK) goto done;

    for (int i = 0; i < N; i++) printf("%.4f  %s\n", lath_cosine(v, v + (size_t)i * d, (int64_t)d), sentences[i]);
    rc = 0;
done:
    if (rc) fprintf(stderr, "embed: %s\n", err.msg);
    free(v);
    lath_embedder_destroy(e);
    lath_model_close(model);
    lath_runtime_destroy(rt);
    return rc;
}
