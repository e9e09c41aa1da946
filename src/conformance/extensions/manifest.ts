/** E1: all that a server offers in one document, under a revision that is the digest of its contents. */
import { createHash } from 'node:crypto'
import { isRecord } from '../../jsonrpc/message.ts'
import type { Json, Scenario } from '../scenario.ts'
import { bringing, extensionId } from '../tools.ts'
import { listOf, type Stage, scenariosOf } from './scenario-of.ts'
import { type Called, openTalk } from './talk.ts'

const scenario = scenariosOf('manifest')

const uri = 'manifest:///service'
const changing = bringing('change:tools')

/** The words of the manifest's schema, and the extensions that they stand for. */
const tokens: Readonly<Record<string, string>> = {
  streaming: 'streaming',
  idempotency: 'idempotency',
  transactions: 'transactions',
  session_state: 'state',
  intent_hints: 'intent',
  provenance: 'provenance',
  human_in_the_loop: 'confirmation',
  data_references: 'data-references',
  subscribe_notify: 'events',
  server_recommendations: 'recommendations',
  structured_errors: 'problem',
  multimodal_signatures: 'media',
}

/** RFC 8785, for JSON as it came. */
export function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`
  if (!isRecord(value)) return JSON.stringify(value)
  const members = Object.keys(value)
    .sort()
    .map(key => `${JSON.stringify(key)}:${canonical(value[key])}`)
  return `{${members.join(',')}}`
}

export function digestOf(manifest: Json): string {
  const { rate_limits: limits, ...rest } = manifest
  const steady = isRecord(limits)
    ? Object.fromEntries(Object.entries(limits).filter(([name]) => name !== 'remaining' && name !== 'resets_at'))
    : limits
  const told = !isRecord(steady) || Object.keys(steady).length === 0 ? rest : { ...rest, rate_limits: steady }
  return `sha256:${createHash('sha256').update(canonical(told)).digest('base64url')}`
}

async function manifestOf({
  talk,
  object,
  made,
}: Pick<Stage<never>, 'talk' | 'object' | 'made'>): Promise<{ called: Called; manifest: Json }> {
  const called = await talk.ask('manifest/get')
  made(called, 'manifest/get')
  return { called, manifest: object(called.result['manifest'], 'manifest/get gives no manifest', called.frames) }
}

/** What is wrong with it by its schema; undefined where nothing is. */
function faultOf(manifest: Json): string | undefined {
  const server = isRecord(manifest['server']) ? manifest['server'] : {}
  if (manifest['manifest_version'] !== '0.1.0') return 'manifest_version is not 0.1.0'
  if (typeof server['name'] !== 'string' || typeof server['mcp_spec_version'] !== 'string')
    return 'server has no name or mcp_spec_version'
  if (typeof server['version'] !== 'string' || !/^\d+\.\d+\.\d+/.test(server['version'])) return 'server.version is no version'
  if (!Array.isArray(manifest['tools'])) return 'tools is no list'
  for (const tool of listOf(manifest['tools'])) {
    if (typeof tool['name'] !== 'string' || typeof tool['description'] !== 'string' || !isRecord(tool['input_schema']))
      return `the tool ${String(tool['name'])} lacks name, description or input_schema`
    if (!/^[a-z][a-z0-9_]*$/.test(tool['name']) && tool['nonconforming_name'] !== true)
      return `the name ${tool['name']} is outside the pattern and not marked`
    if (tool['inputSchema'] !== undefined) return `the tool ${tool['name']} has inputSchema instead of input_schema`
  }
  const extensions = manifest['supported_extensions']
  if (extensions !== undefined && !(Array.isArray(extensions) && extensions.every(one => typeof one === 'string')))
    return 'supported_extensions is no list of words'
  return undefined
}

export const manifest: readonly Scenario[] = [
  scenario({
    id: 'E1-1',
    title: 'The manifest fits its schema',
    writes: false,
    run: async stage => {
      const { called, manifest } = await manifestOf(stage)
      const fault = faultOf(manifest)
      stage.expect(fault === undefined, `The manifest does not fit its schema: ${fault}`, called.frames)
    },
  }),
  scenario({
    id: 'E1-2',
    tries: 3,
    title: 'The manifest has the tools that are listed, with the same schemas',
    writes: false,
    run: async stage => {
      const { called, manifest } = await manifestOf(stage)
      const tools = await listed(stage)
      const shown = new Map(listOf(manifest['tools']).map(tool => [tool['name'], tool]))
      stage.expect(
        canonical([...shown.keys()].sort()) === canonical(tools.map(tool => tool['name']).sort()),
        'The manifest names other tools than tools/list',
        called.frames,
      )
      for (const tool of tools)
        stage.expect(
          canonical(shown.get(tool['name'])?.['input_schema']) === canonical(tool['inputSchema']),
          `input_schema of ${String(tool['name'])} is not its inputSchema`,
          called.frames,
        )
    },
  }),
  scenario({
    id: 'E1-3',
    tries: 3,
    title: 'The revision is the digest of the manifest, and the handshake names it',
    writes: false,
    run: async stage => {
      const { called, manifest } = await manifestOf(stage)
      stage.expect(
        called.result['revision'] === digestOf(manifest),
        `revision is ${String(called.result['revision'])}, the digest is ${digestOf(manifest)}`,
        called.frames,
      )
      const again = await stage.talk.ask('manifest/get')
      stage.expect(
        again.result['revision'] === called.result['revision'],
        'The revision changes from one request to the next',
        again.frames,
      )
      const settings = stage.bench.peer.extension(extensionId('manifest'))
      stage.expect(settings?.['manifest_version'] === '0.1.0', 'The settings of the extension have no manifest_version 0.1.0')
    },
  }),
  scenario({
    id: 'E1-3r',
    also: ['E1-3'],
    tries: 3,
    title: 'Another connection, over stdio the server started anew, has the same revision, and its handshake names it',
    writes: false,
    run: async stage => {
      const { called } = await manifestOf(stage)
      const other = await openTalk(stage.bench, { fresh: true })
      const again = await other.ask('manifest/get')
      stage.expect(
        again.result['revision'] === called.result['revision'],
        'Nothing has changed, and another connection is given another revision',
        [...called.frames, ...again.frames],
      )
      const { capabilities } = other.peer.hello ?? {}
      const declared = isRecord(capabilities) && isRecord(capabilities['extensions']) ? capabilities['extensions'] : {}
      const settings = declared[extensionId('manifest')]
      const named = isRecord(settings) ? settings['revision'] : undefined
      stage.expect(
        named === undefined || named === again.result['revision'],
        `The handshake names the revision ${String(named)}, and the manifest is ${String(again.result['revision'])}`,
        again.frames,
      )
    },
  }),
  scenario({
    id: 'E1-4',
    tries: 3,
    title: 'Who has this revision already is told so, without the document',
    writes: false,
    run: async stage => {
      const { called } = await manifestOf(stage)
      const { revision } = called.result
      const same = await stage.talk.ask('manifest/get', { if_revision: revision })
      stage.expect(
        same.result['not_modified'] === true && same.result['revision'] === revision && same.result['manifest'] === undefined,
        'if_revision with the same revision does not give not_modified: true alone',
        same.frames,
      )
      const other = await stage.talk.ask('manifest/get', { if_revision: 'sha256:other' })
      stage.expect(
        isRecord(other.result['manifest']),
        'if_revision with another revision does not give the manifest',
        other.frames,
      )
    },
  }),
  scenario({
    id: 'E1-5',
    tries: 3,
    title: 'A burst of changes is told once, and the manifest has another revision',
    carriers: ['memory', 'stdio', 'websocket', 'http'],
    tools: { changing },
    run: async stage => {
      const { talk, tools, modern, expect } = stage
      const before = await talk.ask('manifest/get')
      const notices = ['notifications/tools/list_changed', 'notifications/resources/updated']
      if (modern) {
        talk.peer.begin('subscriptions/listen', { notifications: { toolsListChanged: true, resourceSubscriptions: [uri] } })
        await talk.peer.next('notifications/subscriptions/acknowledged')
      } else await talk.ask('resources/subscribe', { uri })
      stage.made(await talk.call(tools.changing.name, tools.changing.args), 'The call that changes the tools')
      for (const notice of notices) await talk.peer.next(notice)
      await talk.peer.settled()
      await talk.peer.hears('nothing', 200)
      for (const notice of notices) {
        const times = talk.peer.heard(notice).filter(frame => notice !== notices[1] || frame.text.includes(uri)).length
        expect(times === 1, `${notice} came ${times} times for one burst`, talk.peer.heard(notice))
      }
      const after = await talk.ask('manifest/get')
      expect(after.result['revision'] !== before.result['revision'], 'The tools changed and the revision did not', after.frames)
    },
  }),
  scenario({
    id: 'E1-7',
    title: 'The manifest names the extensions that the handshake declares',
    writes: false,
    run: async stage => {
      const { called, manifest } = await manifestOf(stage)
      const words = Array.isArray(manifest['supported_extensions']) ? manifest['supported_extensions'] : []
      for (const [token, extension] of Object.entries(tokens)) {
        const declared = stage.bench.peer.extension(extensionId(extension)) !== undefined
        stage.expect(
          words.includes(token) === declared,
          `${token} is ${declared ? 'not ' : ''}in supported_extensions, and ${extensionId(extension)} is ${declared ? '' : 'not '}declared`,
          called.frames,
        )
      }
    },
  }),
  scenario({
    id: 'E1-8',
    title: 'A manifest with counters of its caller is private',
    writes: false,
    run: async stage => {
      const { called, manifest } = await manifestOf(stage)
      const limits = isRecord(manifest['rate_limits']) ? manifest['rate_limits'] : {}
      stage.expect(
        ['public', 'private'].includes(String(called.result['cacheScope'])) && typeof called.result['ttlMs'] === 'number',
        'manifest/get does not say for how long and whom it may be kept',
        called.frames,
      )
      if (limits['remaining'] === undefined) return stage.bench.warn('This manifest has no counters')
      stage.expect(called.result['cacheScope'] === 'private', 'A manifest with counters is not private', called.frames)
    },
  }),
]

async function listed({ talk }: Pick<Stage<never>, 'talk'>): Promise<readonly Json[]> {
  const tools: Json[] = []
  let cursor: unknown
  for (let page = 0; page < 100; page++) {
    const { result } = await talk.ask('tools/list', cursor === undefined ? {} : { cursor })
    tools.push(...listOf(result['tools']))
    cursor = result['nextCursor']
    if (typeof cursor !== 'string') break
  }
  return tools
}
