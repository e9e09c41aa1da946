/** The client's side of roots. */

import { answerOf, byHandler } from '../../../engine/asking.ts'
import type { Side } from '../../../engine/plan.ts'
import type { Awaitable } from '../../../jsonrpc/message.ts'
import { isRoots, type ListRootsResult, listRoots, type Root } from './messages.ts'

export type Roots = readonly Root[] | (() => Awaitable<readonly Root[]>)

export interface RootsClient {
  readonly side: Side
  answer(): Promise<ListRootsResult>
}

export function rootsClient(roots: Roots | undefined): RootsClient {
  const answer = async (): Promise<ListRootsResult> => {
    const given = { roots: typeof roots === 'function' ? await roots() : (roots ?? []) }
    return answerOf('roots', given, isRoots, 'a list of { uri, name? }')
  }
  return {
    answer,
    side: {
      handlers: [[listRoots, { offered: () => roots !== undefined, execute: byHandler('roots', answer) }]],
      capabilities: revision => {
        if (roots === undefined || revision.id === 's3') return {}
        return { roots: revision.era === 'session' ? { listChanged: true } : {} }
      },
    },
  }
}
