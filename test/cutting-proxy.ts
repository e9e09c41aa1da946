/** Stands between a client and a server, and cuts the line after so many bytes of what the server says. */
import net, { type AddressInfo, type Socket } from 'node:net'

export interface CuttingProxy {
  readonly url: string
  /** Severs all that goes through it now. */
  cut(): void
  /** How often it has cut by itself. */
  readonly cuts: number
  /** The line is cut after so many bytes from now, then after so many more, and so on; afterwards no more. */
  arm(bytes: readonly number[]): void
  close(): Promise<void>
}

export async function cuttingProxy(target: string): Promise<CuttingProxy> {
  const { hostname, port, pathname } = new URL(target)
  const open = new Set<Socket>()
  let left: number[] = []
  let cuts = 0
  const server = net.createServer(near => {
    const far = net.connect(Number(port), hostname)
    const end = (): void => {
      near.destroy()
      far.destroy()
    }
    for (const socket of [near, far]) {
      open.add(socket)
      socket.on('error', end).on('close', () => {
        open.delete(socket)
        end()
      })
    }
    near.on('data', data => far.write(data))
    far.on('data', (data: Buffer) => {
      const budget = left[0]
      if (budget === undefined || budget > data.length) {
        if (budget !== undefined) left[0] = budget - data.length
        near.write(data)
        return
      }
      left = left.slice(1)
      cuts++
      near.write(data.subarray(0, budget), end)
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const cut = (): void => {
    for (const socket of open) socket.destroy()
  }
  return {
    cut,
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}${pathname}`,
    get cuts() {
      return cuts
    },
    arm: bytes => {
      left = [...bytes]
    },
    close: async () => {
      cut()
      await new Promise(resolve => server.close(resolve))
    },
  }
}
