/** A recording proxy as a child process: `node record-on-stdio.ts FILE URL` or `… FILE COMMAND ARGS…`. */
import { startRecording } from '../../src/testing/connect.ts'

const [file = '', first = '', ...args] = process.argv.slice(2)
const target = /^https?:/.test(first) ? first : { command: first, args }
const proxy = await startRecording(target, { file, client: { stdio: true } })
await proxy.over
await proxy.close()
