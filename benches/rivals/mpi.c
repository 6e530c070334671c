/* A ping-pong, a flood and a stream between two processes of MPI: prints a line of JSON. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WINDOW = 64, SAMPLES = 200 };

static int later(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The median of many one-way times, in microseconds; each is the mean of `rounds` round trips. */
static double latency(int rank, int size, int rounds) {
    char *bytes = calloc(1, size);
    double times[SAMPLES];
    for (int sample = -20; sample < SAMPLES; sample++) {
        double began = MPI_Wtime();
        for (int round = 0; round < rounds; round++) {
            if (rank == 0) {
                MPI_Send(bytes, size, MPI_BYTE, 1, 7, MPI_COMM_WORLD);
                MPI_Recv(bytes, size, MPI_BYTE, 1, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            } else {
                MPI_Recv(bytes, size, MPI_BYTE, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                MPI_Send(bytes, size, MPI_BYTE, 0, 7, MPI_COMM_WORLD);
            }
        }
        if (sample >= 0) times[sample] = (MPI_Wtime() - began) / rounds / 2 * 1e6;
    }
    free(bytes);
    qsort(times, SAMPLES, sizeof *times, later);
    return times[SAMPLES / 2];
}

/* Messages a second, in windows of `WINDOW` that are acknowledged together, for about `seconds`. */
static double rate(int rank, int size, double seconds) {
    char *bytes = calloc(WINDOW, size);
    MPI_Request requests[WINDOW];
    double began = MPI_Wtime(), passed = 0;
    long messages = 0;
    int more = 1;
    while (more) {
        for (int i = 0; i < WINDOW; i++) {
            char *place = bytes + (size_t)i * size;
            if (rank == 0) MPI_Isend(place, size, MPI_BYTE, 1, 8, MPI_COMM_WORLD, &requests[i]);
            else MPI_Irecv(place, size, MPI_BYTE, 0, 8, MPI_COMM_WORLD, &requests[i]);
        }
        MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
        messages += WINDOW;
        passed = MPI_Wtime() - began;
        if (messages % (WINDOW * 64L) == 0) {
            more = passed < seconds;
            MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
        }
    }
    free(bytes);
    return messages / passed;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    double seconds = argc > 1 ? atof(argv[1]) : 1;
    double one_way = latency(rank, 16, 100);
    double words = rate(rank, 8, seconds);
    double bulk = rate(rank, 65536, seconds) * 65536 / 1e9;
    if (rank == 0)
        printf("{\"one_way_us\": %g, \"messages_per_s\": %g, \"gbytes_per_s\": %g}\n", one_way,
               words, bulk);
    MPI_Finalize();
    return 0;
}
