/* Flags in memory that several processes share: a value that was set is seen only after what was written before it. */
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>

void chromamd_flag_set(int64_t *flag, int64_t value)
{
    atomic_store_explicit((_Atomic int64_t *)flag, value, memory_order_release);
}

int64_t chromamd_flag_get(int64_t *flag)
{
    return atomic_load_explicit((_Atomic int64_t *)flag, memory_order_acquire);
}

/* Lets another process have the core. */
void chromamd_yield(void)
{
    sched_yield();
}
