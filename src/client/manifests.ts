/** The client's copy of a server's manifest: good until its time is over or a change is announced, then asked for by its revision. */
import type { SendOptions } from '../engine/calls.ts'
import type { Tool } from '../features/mcp/tools/messages.ts'
import {
  getManifest,
  hasManifest,
  type Manifest,
  partialManifest,
  resultOf,
  viewOf,
} from '../features/reliability/manifest/client.ts'
import type { WireManifestResult } from '../features/reliability/manifest/messages.ts'
import type { Lister } from './lists.ts'

export class Manifests {
  readonly #lister: Lister
  readonly #tools: () => AsyncIterable<Tool>
  #last: WireManifestResult | undefined

  constructor(lister: Lister, tools: () => AsyncIterable<Tool>) {
    this.#lister = lister
    this.#tools = tools
  }

  async get(options: SendOptions): Promise<Manifest> {
    const { revision, capabilities, serverInfo } = this.#lister.session.opened
    if (hasManifest(revision, capabilities)) {
      const { manifest, revision: digest } = await this.#fetch(options)
      return viewOf(manifest, digest, false)
    }
    const tools: Tool[] = []
    for await (const tool of this.#tools()) tools.push(tool)
    return viewOf(partialManifest(serverInfo, revision, tools), undefined, true)
  }

  async #fetch(options: SendOptions): Promise<WireManifestResult> {
    const { session, cache } = this.#lister
    const place = cache.place(getManifest.name, {}, options.meta)
    const kept = cache.get(place) as WireManifestResult | undefined
    if (kept !== undefined) return kept
    const last = this.#last
    const answer = await session.request(getManifest, last === undefined ? {} : { if_revision: last.revision }, options)
    const result = resultOf(answer, last)
    cache.put(place, result)
    this.#last = result
    return result
  }
}
