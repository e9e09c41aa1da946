/** Serves the descriptions in a folder as a registry: `node server.ts [FOLDER] [PORT]`. Put a `server.json` of each version there. */
import { readdirSync, readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { registry, type ServerDetail } from './registry.ts'

const [folder = join(import.meta.dirname, 'servers'), port = '0'] = process.argv.slice(2)

/** In the order of their file names: name them so that newer versions come later. */
function load(): readonly ServerDetail[] {
  const files = readdirSync(folder).filter(file => file.endsWith('.json'))
  return files.sort().map(file => JSON.parse(readFileSync(join(folder, file), 'utf8')) as ServerDetail)
}

const server = createServer(registry(load))
server.listen(Number(port), '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
})
