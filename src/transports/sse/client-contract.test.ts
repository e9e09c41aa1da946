import { type ConnectedEnds, connectionContract } from '../../../test/transports/contract.ts'
import { serve } from '../../../test/transports/scripted-acceptor.ts'
import type { Connection } from '../../jsonrpc/connection.ts'
import { sseClientConnection } from './client.ts'

/** Both real ends. The server's comes about when the client opens its stream, so each is started without waiting for the other. */
async function open(): Promise<ConnectedEnds> {
  const accepted = Promise.withResolvers<Connection>()
  const { port } = await serve({ accept: accepted.resolve }, { ssePath: '/sse' })
  const client = sseClientConnection(`http://127.0.0.1:${port}/sse`)
  const server = accepted.promise
  return {
    left: {
      carrier: 'sse',
      start: sink => void client.start(sink),
      send: (frame, outgoing) => client.send(frame, outgoing),
      close: () => client.close(),
    },
    right: {
      carrier: 'sse',
      start: async sink => (await server).start(sink),
      send: async (frame, outgoing) => (await server).send(frame, outgoing),
      close: async () => (await server).close(),
    },
    cleanup: () => undefined,
  }
}

connectionContract('the old HTTP+SSE pair', open)
