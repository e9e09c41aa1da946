/**
 * A gateway before many servers makes most of what it ever keeps while it starts. V8 takes all that survives then for a reason to
 * make its young generation as large as it may get, and keeps it so: a third of what the process has. Until it is up, it does not grow.
 */
import { setFlagsFromString } from 'node:v8'

/** Opens something; `ready` tells when it is up, which nobody waits for here. */
export async function startQuietly<T>(open: () => Promise<T>, ready: (opened: T) => Promise<void>): Promise<T> {
  setFlagsFromString('--semi-space-growth-factor=1')
  const relax = (): void => setFlagsFromString('--semi-space-growth-factor=2')
  try {
    const opened = await open()
    void ready(opened).then(relax, relax)
    return opened
  } catch (error) {
    relax()
    throw error
  }
}
