/** A line that can be cut: TCP between a client and a server on loopback. */
import { type AddressInfo, createServer, connect as open, type Socket } from 'node:net'

export interface CuttingProxy {
  /** The server's address by this line. */
  readonly url: string
  /** Severs all that goes through it now. */
  cut(): void
  close(): Promise<void>
}

export async function cuttingProxy(target: string): Promise<CuttingProxy> {
  const { port, pathname } = new URL(target)
  const sockets = new Set<Socket>()
  const keep = (socket: Socket): void => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket)).on('error', () => {})
  }
  const server = createServer(near => {
    const far = open(Number(port), '127.0.0.1')
    for (const socket of [near, far]) keep(socket)
    near.pipe(far).pipe(near)
    near.on('close', () => far.destroy())
    far.on('close', () => near.destroy())
  })
  await new Promise<void>(done => server.listen(0, '127.0.0.1', done))
  const cut = (): void => {
    for (const socket of sockets) socket.destroy()
  }
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}${pathname}`,
    cut,
    close: async () => {
      cut()
      await new Promise(done => server.close(done))
    },
  }
}
