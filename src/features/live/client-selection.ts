/** Telling a server what was selected, and reading its manifest anew when it says that it is another one. */
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

/** Between two readings of a manifest. */
const manifestMs = 1_000

/** Past middleware and mending: it is part of opening a conversation, like the handshake. */
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
    isLost: error => {
      signal?.throwIfAborted()
      return conversation.ended || (error instanceof ConnectionError && error.kind !== 'status' && error.kind !== 'protocol')
    },
  }
}

/** Reads a manifest when it is said to have changed: one at a time, and not more often than makes sense. */
export class ManifestReader {
  readonly #session: ClientSession
  readonly #stop: AbortSignal
  readonly #read: (announced: Announced) => void
  #stale = false
  #reading = false

  constructor(session: ClientSession, stop: AbortSignal, read: (announced: Announced) => void) {
    this.#session = session
    this.#stop = stop
    this.#read = read
  }

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

/** Of a set that its server says will not work: what it misses, and whose it would be to give it. */
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

// What a host says of itself before it knows the server.

/** Host and server say it in the same words; the selection proper follows the server's hello. */
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

/** Among the experiments, where all wires but the dialect have a place; on stateless ones it is an extension too. */
export function hostCapabilities({ extensionsIn, era }: Revision, handlers: LiveHandlers): Capabilities {
  if (extensionsIn === undefined) return {}
  const host = hostLive(handlers)
  const experimental = { [mcplName]: host }
  return era === 'session' ? { experimental } : { experimental, extensions: { [liveExtension]: host } }
}
