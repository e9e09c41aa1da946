/**
 * Moves a data set from one server to another: `node client.ts [MEGABYTES]`. The client passes a reference on and never has the data;
 * the server that imports it is killed on the way, and its successor goes on with what there is. Checks all of it.
 */
import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect, type DataReference, dataReference } from 'vivarium/client'
import { bar } from './bar.ts'
import { type Running, start } from './process.ts'

const megabyte = 1_000_000
const size = Number(process.argv[2] ?? 200) * megabyte
/** A server that dies repeats no more than what came since it last wrote down how far it was. */
const repeatedAtMost = 10 * megabyte
const grownAtMost = 64 * megabyte

const folder = mkdtempSync(join(tmpdir(), 'pipeline-'))
const places = { warehouse: join(folder, 'warehouse'), lab: join(folder, 'lab') }
for (const place of Object.values(places)) mkdirSync(place)
const servers: Running[] = []

try {
  const before = process.memoryUsage().rss
  const warehouse = await run('warehouse.ts', places.warehouse, String(size))
  const reference = await exported(warehouse)
  const origin = new URL(warehouse.url).origin
  await cutOff(await run('lab.ts', places.lab, origin, String(Math.round(size * 0.6))), reference)
  await imported(await run('lab.ts', places.lab, origin), reference)
  const grown = process.memoryUsage().rss - before
  assert(grown < grownAtMost, `The client has grown by ${grown} bytes`)
  console.log('All checks passed, and the data never passed through this client')
} finally {
  for (const { kill } of servers) await kill()
  rmSync(folder, { recursive: true, force: true })
}

async function run(...args: [script: string, ...string[]]): Promise<Running> {
  const server = await start(...args)
  servers.push(server)
  return server
}

/** What is known of the data, and where it lies: a few hundred characters, however much it is. */
async function exported({ url }: Running): Promise<DataReference> {
  console.log('The warehouse exports its readings')
  await using mcp = await connect(url)
  const shown = bar('export')
  const { content } = await mcp.callTool('export_readings', {}, { onProgress: ({ progress }) => shown.to(progress, size) })
  shown.end()
  const reference = content.map(dataReference).find(each => each !== undefined)
  assert(reference?.size_bytes === size)
  console.log(`  ${size / megabyte} MB, by reference`)
  return reference
}

/** The lab dies in the middle of it. */
async function cutOff(lab: Running, reference: DataReference): Promise<void> {
  console.log('The lab imports them')
  await using mcp = await connect(lab.url)
  const shown = bar('import')
  const onProgress = ({ progress }: { progress: number }): void => shown.to(progress, size)
  const lost = mcp.callTool('import_from_ref', { reference }, { onProgress }).catch(() => 'lost')
  assert.equal(await lab.next(), 'stuck')
  await lab.kill()
  shown.end()
  assert.equal(await lost, 'lost')
  console.log('  The lab is killed')
}

/** Its successor is asked for the same. */
async function imported(lab: Running, reference: DataReference): Promise<void> {
  console.log('A new lab process continues')
  await using mcp = await connect(lab.url)
  const shown = bar('import')
  let first: number | undefined
  const onProgress = ({ progress }: { progress: number }): void => {
    first ??= progress
    shown.to(progress, size)
  }
  const { structured, isError } = await mcp.callTool('import_from_ref', { reference }, { onProgress })
  shown.end()
  assert(!isError)
  const { imported_resource_id: made, rows_imported: rows } = structured as Record<string, unknown>
  const [checksum] = [reference.checksum ?? []].flat()
  assert.equal(made, `sha256:${checksum?.value}`)
  assert(first !== undefined && first >= size * 0.6 - repeatedAtMost, `The import started at ${first}`)
  console.log(`  ${Math.floor((first / size) * 100)} % were already there; ${Number(rows).toLocaleString('en')} rows, unchanged`)
}
