/** All that can be known of a server without calling anything of it. */
import { type Client, type ConnectOptions, connect } from '../client/index.ts'
import { why } from '../core/suggestion.ts'
import type { LiveHandlers } from '../features/live/client-api.ts'
import { liveExtension, mcplName } from '../features/live/feature-sets/messages.ts'
import type { PushEvent } from '../features/live/push-events/messages.ts'
import { manifestExtension } from '../features/reliability/manifest/messages.ts'
import { isRecord } from '../jsonrpc/message.ts'
import { jsonValue } from '../recording/format.ts'
import { tapConnection } from '../recording/tap.ts'
import { revisionById } from '../revisions/index.ts'
import type { OpenedTarget } from './connecting.ts'
import { Interrupted } from './io.ts'
import { type FailedList, type Lists, listsOf } from './lists.ts'
import { errorWords } from './server-errors.ts'
import type { ResolvedTarget } from './target.ts'

/** All that is known of a server. */
export type ServerFacts = Awaited<ReturnType<typeof serverFactsOf>>
/** What a server is to a live host, or why that cannot be told; undefined where it is not live, or was not asked. */
type LiveFacts = Awaited<ReturnType<typeof liveFacts>>
/** What could not be had: a list, the manifest, or the connection of MCP Live. */
type FailedFact = Omit<FailedList, 'kind'> & { readonly kind: FailedList['kind'] | 'manifest' | 'live' }

/** What the connection itself tells, heard in passing. */
interface ConnectionFacts {
  /** By which the messages pass. */
  carrier: string
  /** The revisions that the server has named. */
  speaks: readonly string[]
  /** How long answers took, in milliseconds. */
  readonly took: number[]
}

/** Listens to a connection while it is used. */
export function observeConnection(): { readonly heard: ConnectionFacts; readonly wrap: NonNullable<ConnectOptions['wrap']> } {
  const heard: ConnectionFacts = { carrier: 'unknown', speaks: [], took: [] }
  const asked = new Map<unknown, number>()
  return {
    heard,
    wrap: connection => {
      heard.carrier = connection.carrier
      return tapConnection(connection, ({ way, text }) => {
        const value = jsonValue(text)
        const { id, result } = isRecord(value) ? value : {}
        const versions = way === 'in' && isRecord(result) ? result['supportedVersions'] : undefined
        if (Array.isArray(versions)) heard.speaks = versions.filter(each => typeof each === 'string').slice(0, 32)
        const since = way === 'in' ? asked.get(id) : undefined
        if (since !== undefined) heard.took.push(performance.now() - since)
        else if (way === 'out' && id !== undefined) asked.set(id, performance.now())
      })
    },
  }
}

/** Where nothing could be listed. */
const none: Lists = {}

/** Everything that can be had; what fails is told beside it. */
export async function serverFactsOf(
  client: Client,
  heard: ConnectionFacts,
  { openedMs, missing }: Pick<OpenedTarget, 'openedMs' | 'missing'>,
  live: LiveFacts,
) {
  const failed: FailedFact[] = []
  const had = async <T>(kind: FailedFact['kind'], asked: Promise<T>): Promise<T | undefined> => {
    try {
      return await asked
    } catch (error) {
      if (error instanceof Interrupted) throw error
      failed.push({ kind, message: errorWords(error), unknown: false })
      return undefined
    }
  }
  if (live !== undefined && 'failed' in live) failed.push({ kind: 'live', message: live.failed, unknown: false })
  const listed = await had('tools', listsOf(client, missing))
  failed.push(...(listed?.failed ?? []))
  const brokenTools = failed.some(({ kind, unknown }) => kind === 'tools' && !unknown)
  const manifest = hasManifest(client) && !brokenTools ? await had('manifest', client.manifest()) : undefined
  return {
    server: client.server,
    instructions: client.instructions,
    revision: client.revision,
    /** What the server says it speaks, where the wire lets it say so. */
    speaks: heard.speaks,
    /** Whether requests stand for themselves, or belong to a session. */
    era: revisionById(client.revision).era,
    carrier: heard.carrier,
    capabilities: client.capabilities,
    /** Of the protocol, and experiments of older wires. */
    extensions: extensionsIn(client.capabilities),
    live: live !== undefined && 'failed' in live ? undefined : live,
    lists: listed?.lists ?? none,
    failed,
    /** Its own, or one that is made from its tools. */
    manifest,
    /** The median of a few pings or lists. */
    roundTripMs: await roundTrip(client, heard),
    openedMs: Math.round(openedMs),
  }
}

/** Its own, or one that is put together from its tools. */
function hasManifest({ capabilities }: Client): boolean {
  return capabilities['tools'] !== undefined || extensionsIn(capabilities).includes(manifestExtension)
}

/** Extensions, and what older wires have among the experiments. */
export function extensionsIn({ extensions, experimental }: Client['capabilities']): readonly string[] {
  const names = [extensions, experimental].flatMap(each => (isRecord(each) ? Object.keys(each) : []))
  return [...new Set(names)].sort()
}

/** Enough for a median. */
const pings = 5

/** Of pings where the wire has them, else of the lists that were asked for: the first answer is left out, it starts things. */
async function roundTrip(client: Client, { took }: ConnectionFacts): Promise<number | undefined> {
  const asked = [...took.slice(1)]
  try {
    for (let at = 0; at < pings; at++) {
      const begun = performance.now()
      await client.ping({ timeout: '5s' })
      if (at === 0) asked.length = 0
      asked.push(performance.now() - begun)
    }
  } catch {
    // There is no ping on this wire.
  }
  return asked.sort((a, b) => a - b)[Math.floor(asked.length / 2)]
}

/** Whether a server says that it is live; some say it only to hosts that are. */
function saysLive({ experimental, extensions }: Client['capabilities']): boolean {
  return [experimental, extensions].some(each => isRecord(each) && (mcplName in each || liveExtension in each))
}

/** What a server is to a live host; asked for where it says that it is live, or `asked` wants to know. What fails is told by its words. */
export async function liveFacts({ client, target, options }: OpenedTarget, asked: boolean) {
  if (!asked && !saysLive(client.capabilities)) return undefined
  return liveFactsAt(target, options).catch((error: unknown) => ({ failed: errorWords(error) }))
}

/** A connection of its own: it opens otherwise than a plain one. Undefined: it is not live. */
async function liveFactsAt(target: ResolvedTarget['target'], options: ConnectOptions) {
  const client = await connect(target, { ...options, live: liveGuest() })
  try {
    const { live } = client
    if (live === undefined) return undefined
    const featureSets = [...live.featureSets].map(([name, { description, uses = [] }]) => ({
      name,
      description,
      uses: [...uses],
    }))
    return { version: live.dialect.version, dialect: live.dialect.label, carrier: live.dialect.carrier, featureSets }
  } finally {
    await client.close()
  }
}

/** Why a listener refuses everything else. */
const only = why('UNSUPPORTED', 'cli.guest', 'This host only listens and offers nothing else', 'Connect a full host: vivarium up')

/** Enables every feature set where events are wanted, else none. Events are only shown, so sets that declare too little are heard, too. */
export function liveGuest(onPush?: (event: PushEvent) => void): LiveHandlers {
  return {
    select: declared => {
      const enabled = onPush === undefined ? [] : [...declared.keys()]
      const uses = Object.fromEntries(enabled.map(name => [name, ['pushEvents', 'channels', 'channels.incoming'] as const]))
      return { enabled, disabled: [], canEnable: () => false, uses }
    },
    onPush: async event => {
      if (onPush === undefined) return { accepted: false, reason: only.message, data: only }
      onPush(event)
      return { accepted: true }
    },
    onInfer: () => Promise.reject(new Error(only.message)),
    onElevate: async () => ({ approved: false, reason: only.message, data: only }),
    modelInfo: () => ({ id: 'none', vendor: 'none', contextWindow: 0, capabilities: [] }),
  }
}
