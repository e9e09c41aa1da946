/**
 * How much memory two servers need for a data reference between them: each is a process of its own, and looked at from outside while a
 * large content goes from one to the other. What counts is the growth over what each has after a small one, at its highest.
 */
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Client, connect, type DataReference, dataReference } from 'vivarium/client'
import type { Options } from '../options.ts'
import { type Child, cpuMicros, launch, residentBytes, STEP_MS, within } from '../processes.ts'
import { failure, type ReferenceRow } from '../results.ts'

const MiB = 1024 ** 2
const warmBytes = MiB
const lookMs = 5

export async function measureReferences(options: Options, row: (row: ReferenceRow) => void): Promise<void> {
  const bytes = options.quick ? 128 * MiB : 1024 * MiB
  const folder = mkdtempSync(join(tmpdir(), 'vivarium-bench-'))
  const [at, to] = [join(folder, 'exporter'), join(folder, 'importer')]
  for (const place of [at, to]) mkdirSync(place)
  try {
    const exporter = await start('exporter', at)
    const importer = await start('importer', to, new URL(exporter.url).origin)
    await imported(importer, await exported(exporter, warmBytes))
    const making = look(exporter, bytes)
    const reference = await exported(exporter, bytes)
    row({ bytes, what: 'exporter, making it', cells: { references: making() } })
    const looks = [look(exporter, bytes), look(importer, bytes)] as const
    await imported(importer, reference)
    row({ bytes, what: 'exporter, giving it', cells: { references: looks[0]() } })
    row({ bytes, what: 'importer', cells: { references: looks[1]() } })
    for (const { client, child } of [exporter, importer]) {
      await client.close()
      await child.stop()
    }
  } catch (error) {
    row({ bytes, what: 'importer', cells: { references: failure(error) } })
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

interface End {
  readonly url: string
  readonly client: Client
  readonly child: Child
}

async function start(role: string, ...args: string[]): Promise<End> {
  const child = launch('servers/references.mjs', [role, ...args])
  const [said] = await within(STEP_MS, role, Promise.race([once(child.process.stdout, 'data'), child.gone]))
  const url = `http://127.0.0.1:${/\d+/.exec(String(said))?.[0]}/mcp`
  return { url, child, client: await connect(url) }
}

async function exported({ client }: End, bytes: number): Promise<DataReference> {
  const { content, text } = await client.callTool('export', { bytes }, { timeout: '10m' })
  const reference = content.map(dataReference).find(each => each !== undefined)
  if (reference === undefined) throw new Error(text)
  return reference
}

async function imported({ client }: End, reference: DataReference): Promise<void> {
  const { isError, text } = await client.callTool('import_from_ref', { reference }, { timeout: '10m' })
  if (isError) throw new Error(text)
}

type Figures = Exclude<ReferenceRow['cells'][string], { failed: string }>

/** Looks at one process for as long as something goes on. */
function look({ child: { pid } }: End, bytes: number): () => Figures {
  const before = residentBytes(pid)
  const cpu = cpuMicros(pid)
  const began = performance.now()
  let most = before
  const timer = setInterval(() => {
    most = Math.max(most, residentBytes(pid))
  }, lookMs)
  return () => {
    clearInterval(timer)
    const seconds = (performance.now() - began) / 1000
    return {
      beforeMb: before / MiB,
      growthMb: (most - before) / MiB,
      mbPerSecond: bytes / MiB / seconds,
      cpuSecondsPerGb: ((cpuMicros(pid) - cpu) / 1e6) * (1024 ** 3 / bytes),
    }
  }
}
