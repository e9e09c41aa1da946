import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { afterEach, describe, expect, it } from 'vitest'
import { type Client, connect } from '../../src/client/index.ts'
import { openStore } from '../../src/stores/index.ts'
import { storesUnderTest } from '../stores-under-test.ts'
import { killProcess } from './other-process.ts'
import { type Source, sourceOf } from './reference-source.ts'

const script = join(import.meta.dirname, 'reference-process.ts')
const stores = storesUnderTest()
const MiB = 1024 ** 2
const open: (() => unknown)[] = []
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close()
})

interface Half {
  readonly size: number
}

async function world(kind: 'sqlite' | 'postgres', era: '2025-11-25' | '2026-07-28', pendingAfter = 20_000) {
  const folder = mkdtempSync(join(tmpdir(), 'vivarium-references-'))
  open.push(() => rmSync(folder, { recursive: true, force: true }))
  const source: Source = await sourceOf(data)
  open.push(() => source.close())
  const url = stores.url(kind)
  const args = ['--disable-warning=ExperimentalWarning', script, url, folder, source.origin, String(pendingAfter)]
  const start = async (): Promise<Client> => {
    const client = await connect({ command: process.execPath, args }, { revisions: [era], retry: false })
    open.push(() => client.close())
    return client
  }
  const halves = async (): Promise<readonly Half[]> => {
    const store = await openStore(url)
    const found = await store.scan('reference-half/')
    await store.close()
    return found.map(({ value }) => JSON.parse(value))
  }
  const kill = async (client: Client): Promise<void> => {
    const { text } = await client.callTool('pid')
    while (!(await halves()).some(({ size }) => size >= 8 * MiB)) await wait(20)
    killProcess(text)
  }
  const half = (): string[] => readdirSync(join(folder, 'blobs', 'incoming'))
  return { source, start, kill, halves, half, digest: (source.reference.checksum as { value: string }).value }
}

const data = new Uint8Array(20 * MiB)
for (let at = 0; at < data.length; at += 97) data[at] = at >> 7

describe.each([
  ['2025-11-25', 'sqlite'],
  ['2026-07-28', 'postgres'],
] as const)('an importer that is killed, at %s on %s', (era, kind) => {
  it('goes on in its next life with the bytes that it has, and checks the whole', async () => {
    const { source, start, kill, halves, half, digest } = await world(kind, era)
    source.stopAt = 12 * MiB
    const one = await start()
    const lost = one.callTool('import_from_ref', { reference: source.reference }).catch(() => 'lost')
    await kill(one)
    expect(await lost).toBe('lost')
    source.stopAt = Number.POSITIVE_INFINITY
    const two = await start()
    const heard: number[] = []
    const onProgress = ({ progress }: { progress: number }): void => void heard.push(progress)
    const { structured } = await two.callTool('import_from_ref', { reference: source.reference }, { onProgress })
    expect(structured).toEqual({ status: 'imported', imported_resource_id: digest })
    expect(source.asked).toEqual([
      [undefined, undefined],
      [expect.stringMatching(/^bytes=\d+-$/), '"one"'],
    ])
    const from = Number(/\d+/.exec(String(source.asked[1]?.[0]))?.[0])
    expect(from).toBeGreaterThanOrEqual(8 * MiB)
    expect(heard[0]).toBe(from)
    expect([await halves(), half()]).toEqual([[], []])
  })

  it('E9-9: what was pending goes on when it is asked about', async () => {
    const { source, start, kill, digest } = await world(kind, era, 1)
    source.stopAt = 12 * MiB
    const one = await start()
    const first = await one.callTool('import_from_ref', { reference: source.reference })
    expect(first.structured).toEqual({ status: 'pending', operation_id: expect.any(String) })
    const { operation_id } = first.structured as { operation_id: string }
    await kill(one)
    source.stopAt = Number.POSITIVE_INFINITY
    const two = await start()
    const ask = async () => (await two.callTool('import_from_ref', { operation_id })).structured as { status: string }
    let now = await ask()
    while (now.status === 'pending') {
      await wait(100)
      now = await ask()
    }
    expect(now).toEqual({ status: 'imported', imported_resource_id: digest, operation_id })
    expect(source.asked.map(([range]) => range)).toEqual([undefined, expect.stringMatching(/^bytes=\d{7,}-$/)])
  })
})
