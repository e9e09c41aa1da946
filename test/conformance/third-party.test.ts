import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { allRevisions, judge, type Places, type Report, type RevisionId, tableOf } from '../../src/conformance/index.ts'
import { compiledOnce } from '../compiled-once.ts'
import { type PeerProcess, peerFile, startPeer } from '../interop/peer-process.ts'

const folder = mkdtempSync(join(tmpdir(), 'vivarium-kit-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** The program of a package of the dev dependencies. */
function programOf(name: string): string {
  const manifest = createRequire(import.meta.url).resolve(`${name}/package.json`)
  return join(dirname(manifest), 'dist/index.js')
}

function node(...args: readonly string[]): Places {
  return { stdio: { command: process.execPath, args, env: { ...compiledOnce, MEMORY_FILE_PATH: join(folder, 'memory.json') } } }
}

/** What failed, and where: `id revision carrier`. Every one of them is explained in docs/guide/conformance.md. */
function failuresOf(report: Report): readonly string[] {
  const failed = report.results.filter(({ status }) => status === 'failed')
  return failed.map(({ test_id, revision, carrier }) => `${test_id} ${revision} ${carrier}`).sort()
}

function at(id: string, carrier: string, ...revisions: readonly RevisionId[]): readonly string[] {
  return revisions.map(revision => `${id} ${revision} ${carrier}`)
}

const sessions = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25'] as const
/** Processes start slowly: the packages, which share one SDK, are judged where the wires differ most. */
const some = ['2025-03-26', '2025-11-25', '2026-07-28'] as const
const http = ['2025-03-26', '2025-06-18', '2025-11-25'] as const

/** SDK v1 turns its own refusal of an unknown tool into a result; and only its HTTP carrier knows batches, at any revision. */
const sdkV1Stdio = [
  ...at('base/tools/unknown', 'stdio', ...sessions),
  ...at('base/batch/requests', 'stdio', '2025-03-26'),
  ...at('base/batch/mixed', 'stdio', '2025-03-26'),
]
const packaged = sdkV1Stdio.filter(line => some.some(revision => line.includes(revision)))
const openHttp = [
  ...at('base/http/foreign-origin', 'http', ...http),
  ...at('base/batch/refused', 'http', '2025-06-18', '2025-11-25'),
]

async function expectFailures(
  places: Places,
  failures: readonly string[],
  revisions: readonly RevisionId[] = allRevisions,
): Promise<Report> {
  const report = await judge(places, { parallel: 4, revisions })
  expect(report.summary.error, tableOf(report)).toBe(0)
  expect(failuresOf(report), tableOf(report)).toEqual([...failures].sort())
  expect(report.summary.passed).toBeGreaterThan(80)
  return report
}

describe('servers of others are judged without a false failure', { timeout: 600_000 }, () => {
  it('@modelcontextprotocol/server-filesystem', async () => {
    writeFileSync(join(folder, 'a.txt'), 'hello')
    await expectFailures(node(programOf('@modelcontextprotocol/server-filesystem'), folder), packaged, some)
  })

  it('@modelcontextprotocol/server-memory', async () => {
    await expectFailures(node(programOf('@modelcontextprotocol/server-memory')), packaged, some)
  })

  it('@modelcontextprotocol/server-everything', async () => {
    await expectFailures(node(programOf('@modelcontextprotocol/server-everything'), 'stdio'), packaged, some)
  })

  describe('the official SDKs', () => {
    const peers: PeerProcess[] = []
    const started = new Map<string, PeerProcess>()
    beforeAll(async () => {
      for (const [name, carrier] of [
        ['sdk-v1-server', 'http'],
        ['sdk-v1-server', 'sse'],
        ['sdk-v2-server', 'http'],
      ] as const) {
        const peer = await startPeer(name, carrier)
        peers.push(peer)
        started.set(`${name} ${carrier}`, peer)
      }
    })
    afterAll(async () => {
      for (const peer of peers) await peer.close()
    })
    const urlOf = (key: string): string => started.get(key)?.url ?? ''

    it('v1, over stdio, HTTP and the old pair', async () => {
      const places = {
        ...node(peerFile('sdk-v1-server'), 'stdio'),
        http: urlOf('sdk-v1-server http'),
        sse: urlOf('sdk-v1-server sse'),
      }
      await expectFailures(places, [
        ...sdkV1Stdio,
        ...at('base/tools/unknown', 'http', ...http),
        ...openHttp,
        ...sdkV1Stdio.map(line => line.replace(' stdio', ' sse')),
      ])
    })

    it('v2, over stdio and HTTP', async () => {
      const places = { ...node(peerFile('sdk-v2-server'), 'stdio'), http: urlOf('sdk-v2-server http') }
      await expectFailures(places, [
        ...at('base/batch/requests', 'stdio', '2025-03-26'),
        ...at('base/batch/mixed', 'stdio', '2025-03-26'),
        ...at('base/discovery/unknown-version', 'stdio', '2026-07-28'),
        ...openHttp,
        ...at('base/http/foreign-origin', 'http', '2026-07-28'),
      ])
    })
  })
})
