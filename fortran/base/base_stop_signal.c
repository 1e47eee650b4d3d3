/* Signals that ask a run to stop: they are noted here, and the run looks when it suits it. */
#include <signal.h>
#include <string.h>

void chroma_catch_stop_signals(void);
int chroma_stop_signal(void);

static volatile sig_atomic_t noted = 0;

static void note(int number)
{
    noted = number;
}

/* SIGTERM and SIGUSR1 come from schedulers before the end of a job's time, SIGINT from the keyboard, SIGHUP from a
   terminal that closes, unless nohup lets that one be ignored. */
void chroma_catch_stop_signals(void)
{
    static const int numbers[] = {SIGTERM, SIGUSR1, SIGINT, SIGHUP};
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = note;
    action.sa_flags = SA_RESTART; /* calls of MPI and of the file system go on */
    sigemptyset(&action.sa_mask);
    for (unsigned k = 0; k < sizeof numbers / sizeof *numbers; k++) {
        struct sigaction before;
        sigaction(numbers[k], NULL, &before);
        if (numbers[k] != SIGHUP || before.sa_handler != SIG_IGN)
            sigaction(numbers[k], &action, NULL);
    }
}

/* The last signal that came, 0 = none. */
int chroma_stop_signal(void)
{
    return noted;
}
