/** All that can be known of a server without calling anything of it. */
import { type Client, type ConnectOptions, connect, type Manifest, type RevisionId } from '../client/index.ts'
import { why } from '../core/suggestion.ts'
import type { LiveHandlers } from '../features/live/client-api.ts'
import { liveExtension, mcplName } from '../features/live/feature-sets/messages.ts'
import type { PushEvent } from '../features/live/push-events/messages.ts'
import { manifestExtension } from '../features/reliability/manifest/messages.ts'
import { isRecord } from '../jsonrpc/message.ts'
import { tapConnection } from '../recording/tap.ts'
import { revisionById } from '../revisions/index.ts'
import { Interrupted } from './io.ts'
import { type FailedList, type Lists, listsOf } from './lists.ts'
import { errorWords } from './server-errors.ts'
import type { Resolved } from './target.ts'

interface LiveFacts {
  readonly version: string
  readonly dialect: string
  readonly carrier: string
  readonly featureSets: readonly {
    readonly name: string
    readonly description: string | undefined
    readonly uses: readonly string[]
  }[]
}

export interface ServerFacts {
  readonly server: Client['server']
  readonly instructions: string | undefined
  readonly revision: RevisionId
  /** What the server says it speaks, where the wire lets it say so. */
  readonly speaks: readonly string[]
  readonly era: 'session' | 'request'
  readonly carrier: string
  readonly capabilities: Client['capabilities']
  readonly extensions: readonly string[]
  readonly live: LiveFacts | undefined
  readonly lists: Lists
  /** What could not be had of all this, and why. */
  readonly failed: readonly FailedFact[]
  readonly manifest: Manifest | undefined
  /** The median of a few pings or lists. */
  readonly roundTripMs: number | undefined
  readonly openedMs: number
}

/** A list, the manifest, or the connection of MCP Live. */
export type FailedFact = Omit<FailedList, 'kind'> & { readonly kind: FailedList['kind'] | 'manifest' | 'live' }

/** What the connection itself tells, heard in passing. */
interface Overheard {
  carrier: string
  speaks: readonly string[]
  /** How long answers took, in milliseconds. */
  readonly took: number[]
}

export function overhearing(): { readonly heard: Overheard; readonly wrap: NonNullable<ConnectOptions['wrap']> } {
  const heard: Overheard = { carrier: 'unknown', speaks: [], took: [] }
  const asked = new Map<unknown, number>()
  return {
    heard,
    wrap: connection => {
      heard.carrier = connection.carrier
      return tapConnection(connection, ({ way, text }) => {
        if (way === 'in' && text.includes('"supportedVersions"')) heard.speaks = versionsIn(text)
        const id = idIn(text)
        const since = way === 'in' ? asked.get(id) : undefined
        if (since !== undefined) heard.took.push(performance.now() - since)
        else if (way === 'out' && id !== undefined) asked.set(id, performance.now())
      })
    },
  }
}

function versionsIn(text: string): readonly string[] {
  try {
    const frame: unknown = JSON.parse(text)
    const result = isRecord(frame) ? frame['result'] : undefined
    const versions = isRecord(result) ? result['supportedVersions'] : undefined
    return Array.isArray(versions) ? versions.filter(each => typeof each === 'string').slice(0, 32) : []
  } catch {
    return []
  }
}

/** Everything that can be had; what fails is told beside it. */
export async function serverFactsOf(
  client: Client,
  {
    heard,
    openedMs,
    live,
    missing,
  }: {
    readonly heard: Overheard
    readonly openedMs: number
    readonly live: LiveFacts | { readonly failed: string } | undefined
    readonly missing: ReadonlySet<string>
  },
): Promise<ServerFacts> {
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
    speaks: heard.speaks,
    era: revisionById(client.revision).era,
    carrier: heard.carrier,
    capabilities: client.capabilities,
    extensions: extensionsIn(client.capabilities),
    live: live !== undefined && 'failed' in live ? undefined : live,
    lists: listed?.lists ?? {},
    failed,
    manifest,
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

function idIn(text: string): unknown {
  try {
    const frame: unknown = JSON.parse(text)
    return isRecord(frame) ? frame['id'] : undefined
  } catch {
    return undefined
  }
}

const pings = 5

/** Of pings where the wire has them, else of the lists that were asked for: the first answer is left out, it starts things. */
async function roundTrip(client: Client, { took }: Overheard): Promise<number | undefined> {
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
export function saysLive({ experimental, extensions }: Client['capabilities']): boolean {
  return [experimental, extensions].some(each => isRecord(each) && (mcplName in each || liveExtension in each))
}

/** A connection of its own: it opens otherwise than a plain one. Undefined: it is not live. */
export async function liveFacts(target: Resolved['target'], options: ConnectOptions): Promise<LiveFacts | undefined> {
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

const only = why('UNSUPPORTED', 'cli.guest', 'This host only listens', 'Connect a host that does more: vivarium up')

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
