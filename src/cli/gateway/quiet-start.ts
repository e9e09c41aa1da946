/**
 * A gateway before many servers makes most of what it ever keeps while it starts. V8 takes all that survives then for a reason to
 * make its young generation as large as it may get, and keeps it so: a third of what the process has. Until it is up, it does not grow.
 */
import { setFlagsFromString } from 'node:v8'

export async function startQuietly(up: () => Promise<void>): Promise<void> {
  setFlagsFromString('--semi-space-growth-factor=1')
  try {
    await up()
  } finally {
    setFlagsFromString('--semi-space-growth-factor=2')
  }
}
