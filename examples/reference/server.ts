/** Starts the reference server: `node server.ts [--port N]`, or `--stdio` (its contents by reference are on HTTP all the same). */
import { startReference } from './start.ts'

const words = process.argv.slice(2)
const port = Number(words[words.indexOf('--port') + 1] ?? 0)
const { server, url } = await startReference({}, words.includes('--port') && Number.isSafeInteger(port) ? port : 0)
if (words.includes('--stdio')) {
  await server.stdio()
  await server.close()
} else console.log(url)
