/**
 * Channels that a server offers (MCP Live 0.4), registered with hosts that have their set enabled. A host that is told of no channel can
 * publish in none, and hears no message of one before it has answered that it knows it.
 */
import type { Side } from '../../../engine/plan.ts'
import type { LiveHost } from '../hosts/messages.ts'
import type { ChannelOptions } from './handlers.ts'
import { channelsChanged, registerChannels, type WireChannel } from './messages.ts'
import { channelPosting, type PostingParts, type Registered } from './posting.ts'

interface ChannelsParts extends Omit<PostingParts, 'channels'> {
  /** A host knows other channels now: there may be messages for it. */
  readonly known: () => void
}

interface ChannelsServer {
  readonly side: Side
  add(featureSet: string, id: string, options: ChannelOptions): void
  remove(id: string): void
  /** The set is no longer offered, nor are its channels. */
  drop(featureSet: string): void
  /** Whether it is a channel of this set. */
  has(featureSet: string, id: string): boolean
  /** Whether a host was told of it, and has answered. */
  isKnown(host: LiveHost, id: string): boolean
  /** Hosts have come, or have selected: each is told of the channels that it may know. */
  sync(): void
}

const answerMs = 30_000

/** What a host was told, and whether it has answered. */
interface Told {
  readonly channels: ReadonlyMap<string, WireChannel>
  answered: boolean
}

export function channelsServer(parts: ChannelsParts): ChannelsServer {
  const channels = new Map<string, Registered>()
  const told = new WeakMap<LiveHost, Told>()
  const posting = channelPosting({ ...parts, channels })
  let planned = false
  let everOffered = false
  const syncAll = (): void => {
    planned = false
    for (const host of parts.hosts()) if (host.reachable) tell(parts, host, channels, told)
  }
  // After what is being answered now: hosts wait for that first.
  const sync = (): void => {
    if (planned || (channels.size === 0 && !everOffered)) return
    planned = true
    parts.clock.setTimeout(syncAll, 0, true)
  }
  const remove = (id: string): void => {
    channels.delete(id)
    posting.dropped(id)
    sync()
  }
  return {
    side: posting.side,
    add: (featureSet, id, { label, type }) => {
      const wire = { id, ...(type === undefined ? {} : { type }), ...(label === undefined ? {} : { label }) }
      channels.set(id, { featureSet, wire })
      everOffered = true
      sync()
    },
    remove,
    drop: featureSet => {
      for (const [id, channel] of channels) if (channel.featureSet === featureSet) remove(id)
    },
    has: (featureSet, id) => channels.get(id)?.featureSet === featureSet,
    isKnown: (host, id) => {
      const known = told.get(host)
      return channels.has(id) && known?.answered === true && known.channels.has(id)
    },
    sync,
  }
}

/** Registers with a host that knows none yet; to others what has changed is told. */
function tell(
  { trace, known: heard }: ChannelsParts,
  host: LiveHost,
  channels: ReadonlyMap<string, Registered>,
  told: WeakMap<LiveHost, Told>,
): void {
  const known = told.get(host)?.channels
  const now = new Map(
    [...channels].filter(([, { featureSet }]) => host.selected.enabled(featureSet)).map(([id, { wire }]) => [id, wire]),
  )
  const added = [...now].filter(([id]) => known?.has(id) !== true).map(([, wire]) => wire)
  const removed = [...(known?.keys() ?? [])].filter(id => !now.has(id))
  if (added.length + removed.length === 0) return
  const telling: Told = { channels: now, answered: false }
  told.set(host, telling)
  const asking =
    known === undefined || known.size === 0
      ? host.request(registerChannels, { channels: added }, { timeoutMs: answerMs })
      : host.request(channelsChanged, { added, removed }, { timeoutMs: answerMs })
  asking.then(
    () => {
      telling.answered = true
      heard()
    },
    error => {
      trace('channels-not-registered', error)
      if (told.get(host) === telling) told.delete(host)
    },
  )
}
