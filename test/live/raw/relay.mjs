/** A process that is nothing but a pipe: what its parent writes goes to a socket, what comes from there goes to its output. */
import { connect } from 'node:net'

const socket = connect(Number(process.argv[2]), '127.0.0.1')
process.stdin.pipe(socket)
socket.pipe(process.stdout)
socket.on('close', () => process.exit(0))
socket.on('error', () => process.exit(1))
