/** Both ends of stdio through a real child process, under the contract of all connections. */
import { type AddressInfo, createServer } from 'node:net'
import { PassThrough } from 'node:stream'
import { connectionContract } from '../../../test/transports/contract.ts'
import { stdioClientConnection } from './client.ts'
import { stdioServerConnection } from './server.ts'

/** A command that hands everything on to a socket, and back. */
const relay = `
const socket = require('node:net').connect(Number(process.argv[1]), '127.0.0.1')
process.stdin.pipe(socket)
socket.pipe(process.stdout)
socket.on('end', () => process.stdin.destroy())`

connectionContract('stdio', async () => {
  const input = new PassThrough()
  const output = new PassThrough()
  const listener = createServer(socket => {
    socket.on('error', () => {})
    socket.pipe(input)
    output.pipe(socket)
  })
  await new Promise<void>(done => listener.listen(0, '127.0.0.1', done))
  const { port } = listener.address() as AddressInfo
  const left = stdioClientConnection({ command: process.execPath, args: ['-e', relay, `${port}`] })
  const right = stdioServerConnection({ input, output })
  return { left, right, cleanup: () => void listener.close() }
})
