/** The client's side of roots: saying which folders it works in, and that they are other ones now. */

import { answerOf, byHandler } from '../../../engine/asking.ts'
import { type ClientSession, defineClientFeature, extend } from '../../../engine/client-feature.ts'
import type { Side } from '../../../engine/plan.ts'
import type { Awaitable } from '../../../jsonrpc/message.ts'
import { questionHandlers } from '../input-required/messages.ts'
import { isRoots, listRoots, type Root, rootsChanged } from './messages.ts'

/** The roots of a client, or a function that returns them when a server asks. */
type Roots = readonly Root[] | (() => Awaitable<readonly Root[]>)

/** Announces roots. */
export interface RootsClientApi {
  /** Notifies the server that the roots have changed. */
  rootsChanged(): void
}

/** Options of `connect` for roots. */
export interface RootsOptions {
  /** The folders that the user works in. If set, the client declares `roots`. Default: none. */
  readonly roots?: Roots
}

/** Answers which folders this client works in. */
export const rootsClient = defineClientFeature<RootsOptions>({
  name: 'roots',
  options: { roots: 'any' },
  setup(kit, { roots }) {
    const { side, answer } = rootsSide(roots)
    return { side, client: rootsApi(kit), extensions: [extend(questionHandlers, { method: listRoots, answer })] }
  },
})

/** Telling of roots, also for whoever answers the question otherwise. */
export function rootsApi(kit: { readonly session: ClientSession }): RootsClientApi {
  return { rootsChanged: () => void kit.session.engine.notify(kit.session.opened.conversation, rootsChanged, {}) }
}

/** What answers for the roots, and what declares them. */
export function rootsSide(roots: Roots | undefined) {
  const answer = async (): Promise<object> => {
    const given = { roots: typeof roots === 'function' ? await roots() : (roots ?? []) }
    return answerOf('roots', given, isRoots, 'a list of { uri, name? }')
  }
  const side: Side = {
    handlers: [[listRoots, { offered: () => roots !== undefined, execute: byHandler('roots', answer) }]],
    capabilities: revision => {
      if (roots === undefined || !revision.detailedCapabilities) return {}
      return { roots: revision.era === 'session' ? { listChanged: true } : {} }
    },
  }
  return { side, answer }
}
