/** Keeps standard output for the protocol alone. */
import type { StreamWrite } from '../framing/writer.ts'

export interface StdoutClaim {
  /** Writes to the real standard output. */
  readonly write: StreamWrite
  /** Gives standard output back to everybody. */
  release(): void
}

/**
 * Sends what anybody else writes to standard output to standard error. `console.log`, `info`, `debug`, `table` and the
 * others all end in the stream's `write`, so that is the one place to stand.
 */
export function claimStdout(): StdoutClaim {
  const { stdout, stderr } = process
  const before = Object.getOwnPropertyDescriptor(stdout, 'write')
  const original = stdout.write
  const diverted = (...args: Parameters<typeof stderr.write>) => stderr.write(...args)
  Object.defineProperty(stdout, 'write', { value: diverted, configurable: true, writable: true })
  return {
    write: (data, done) => original.call(stdout, data, 'utf8', done),
    release() {
      // If somebody has wrapped our function in the meantime, theirs stays: it is not ours to remove.
      if (stdout.write !== diverted) return
      if (before === undefined) Reflect.deleteProperty(stdout, 'write')
      else Object.defineProperty(stdout, 'write', before)
    },
  }
}
