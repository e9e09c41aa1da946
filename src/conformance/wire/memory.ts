/** A server in this process, reached through its door. */
import type { Door } from '../../jsonrpc/connection.ts'
import { memoryPair } from '../../transports/memory.ts'
import type { Pipe } from './pipe.ts'

export function memoryPipe(door: Door): Pipe {
  const [near, far] = memoryPair()
  return {
    carrier: 'memory',
    async start(sink) {
      door.accept(far)
      await near.start({
        frame: text => sink.frame(text),
        fault: fault => sink.frame(fault.message),
        closed: reason => sink.closed(reason?.message ?? 'closed'),
      })
    },
    async send(text) {
      await near.send(text)
      return {}
    },
    close: () => near.close(),
  }
}
