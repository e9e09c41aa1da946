/**
 * The server side of stdio: frames arrive on standard input and leave on standard output. It also reserves standard output, so
 * that nothing else in the process can write between the frames.
 */

import type { Readable, Writable } from 'node:stream'
import type { Clock } from '../../core/clock.ts'
import type { Connection } from '../../jsonrpc/connection.ts'
import { type CarrierLimits, serverCarrierLimits } from '../framing/limits.ts'
import { StreamConnection } from '../framing/stream.ts'
import type { StreamWrite } from '../framing/writer.ts'

/** Other streams than those of the process, limits and waits. */
interface StdioServerOptions {
  /** Default: standard input. */
  readonly input?: Readable
  /** Default: standard output. */
  readonly output?: Writable
  readonly limits?: Partial<CarrierLimits>
  readonly clock?: Clock
  /** The longest wait at the end for the client to read what was sent. Default 2 s. */
  readonly lingerMs?: number
}

/**
 * Serves one client on standard input and output, or on any other pair of streams.
 *
 * While it is open, standard output belongs to it: whatever else writes there (`console.log`, a chatty library) is sent
 * to standard error instead, for one stray line would break the protocol. It ends when the input ends.
 *
 * @example
 * const connection = stdioServerConnection()
 * connection.start({ frame: text => connection.send(text), fault: console.error, closed: () => {} })
 */
export function stdioServerConnection(options: StdioServerOptions = {}): Connection {
  const { input = process.stdin, output = process.stdout, clock, lingerMs } = options
  const claim = output === process.stdout ? claimStdout() : undefined
  return new StreamConnection({
    carrier: 'stdio',
    input,
    output,
    ...(claim === undefined ? {} : { write: claim.write }),
    limits: serverCarrierLimits(options.limits),
    serving: true,
    clock,
    lingerMs,
    release() {
      claim?.release()
      // Streams passed by the caller end with the connection. Those of the process stay open, but no longer keep it alive.
      if (input === process.stdin) input.pause()
      else input.destroy()
      if (output !== process.stdout) output.end()
    },
  })
}

/** Exclusive use of standard output. */
interface StdoutClaim {
  /** Writes to the real standard output. */
  readonly write: StreamWrite
  /** Gives standard output back to everybody. */
  release(): void
}

/**
 * Redirects everything that other code writes to standard output to standard error. All methods of `console` end in the `write`
 * of the stream, so replacing that one function is enough.
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
      // If other code has wrapped our function in the meantime, its wrapper stays in place.
      if (stdout.write !== diverted) return
      if (before === undefined) Reflect.deleteProperty(stdout, 'write')
      else Object.defineProperty(stdout, 'write', before)
    },
  }
}
