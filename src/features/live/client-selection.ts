/**
 * Helpers of a live session: telling the server the selection, re-reading a changed manifest, and what the host declares in the
 * handshake.
 */
import { quoted, type Why, why } from '../../core/suggestion.ts'
import { pause } from '../../engine/backoff.ts'
import type { ClientSession } from '../../engine/client-feature.ts'
import { ConnectionError } from '../../jsonrpc/connection.ts'
import { isRecord, type Params } from '../../jsonrpc/message.ts'
import type { Capabilities, Revision } from '../../revisions/index.ts'
import type { LiveHandlers } from './client-api.ts'
import { type Announced, announcedBy, hasTools } from './dialects/messages.ts'
import type { PolicyCarrier } from './feature-sets/client.ts'
import {
  liveExtension,
  liveVersion,
  mcplName,
  readLiveManifest,
  updateSets,
  updateSetsByRequest,
} from './feature-sets/messages.ts'

/** Minimum time between two reads of the manifest. */
const manifestMs = 1_000

/** Sends the selection over a session. It bypasses middleware and retries, because it is part of opening the conversation. */
export function sessionCarrier(
  { engine, opened: { conversation } }: ClientSession,
  signal: AbortSignal | undefined,
): PolicyCarrier {
  const given = signal === undefined ? {} : { signal }
  return {
    request: (selection, silenceMs) =>
      engine.call(conversation, updateSetsByRequest, selection, {
        ...given,
        timeoutMs: silenceMs,
        totalMs: silenceMs,
        quiet: true,
      }),
    notify: selection => engine.tell(conversation, updateSets, selection),
    // True if the connection is gone, so that another attempt makes no sense.
    isLost: error => {
      signal?.throwIfAborted()
      return conversation.ended || (error instanceof ConnectionError && error.kind !== 'status' && error.kind !== 'protocol')
    },
  }
}

/** Re-reads the manifest after a change: one read at a time, at most one per second. */
export class ManifestReader {
  readonly #session: ClientSession
  readonly #stop: AbortSignal
  readonly #read: (announced: Announced) => void
  /** A change was announced during a read. */
  #stale = false
  #reading = false

  constructor(session: ClientSession, stop: AbortSignal, read: (announced: Announced) => void) {
    this.#session = session
    this.#stop = stop
    this.#read = read
  }

  /** Marks the manifest as changed and starts reading it. */
  stale(): void {
    this.#stale = true
    if (this.#reading) return
    this.#reading = true
    this.#run().finally(() => {
      this.#reading = false
    })
  }

  async #run(): Promise<void> {
    const { engine } = this.#session
    while (this.#stale && !this.#stop.aborted) {
      this.#stale = false
      try {
        const manifest = await this.#session.request(readLiveManifest, {})
        if (isRecord(manifest)) this.#read(announcedBy(manifest, hasTools(this.#session.opened.capabilities)))
      } catch (error) {
        engine.trace('live-manifest-unread', error)
      }
      await pause(engine.clock, manifestMs, this.#stop, true)
    }
  }
}

/** Explains that a server reports a set as unavailable: what is missing, and who can provide it. */
export function unavailable(featureSet: string, missing: readonly string[], announced: (path: string) => boolean): Why {
  const said = `The server says that its feature set ${quoted(featureSet)} will not work`
  const [own, ours] = [missing.filter(path => !announced(path)), missing.filter(announced)].map(some =>
    some.map(quoted).join(', '),
  )
  const message = [
    ...(missing.length === 0 ? [`${said}, and not what it misses`] : [said]),
    ...(ours === '' ? [] : [`this host does not grant ${ours}`]),
    ...(own === '' ? [] : [`the server itself does not announce ${own}`]),
  ].join(': ')
  const fix = ours === '' ? 'Ask the author of the server, or disable the set' : `Allow ${ours} for it, or disable the set`
  return why('SET_UNAVAILABLE', 'receipt', message, fix)
}

// What a host declares before it knows the server.

/** The host's declaration in the handshake; the actual selection follows later. */
export function hostLive({ hello = {} }: LiveHandlers): Params {
  const { enabled = [], disabled = [], scopes } = hello
  return {
    version: liveVersion,
    pushEvents: true,
    contextHooks: { beforeInference: true, afterInference: { blocking: true } },
    inferenceRequest: { streaming: true },
    inferenceLifecycle: true,
    modelInfo: true,
    channels: true,
    featureSets: { enabled, disabled },
    ...(scopes === undefined ? {} : { scopes }),
  }
}

/** The host's capabilities: under `experimental`, on stateless wires under `extensions` too. */
export function hostCapabilities({ extensionsIn, era }: Revision, handlers: LiveHandlers): Capabilities {
  if (extensionsIn === undefined) return {}
  const host = hostLive(handlers)
  const experimental = { [mcplName]: host }
  return era === 'session' ? { experimental } : { experimental, extensions: { [liveExtension]: host } }
}
