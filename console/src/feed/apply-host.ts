/** What the events of an agent host do to what was read: turns and their spans change in place, the rest is read again. */
import type { InfiniteData, QueryClient } from '@tanstack/react-query'
import type { ConsoleEvent, HostEvents, List, TurnDetail, TurnRow } from '#contract'
import { turnKey, turnListKey } from '../api/host-lists.ts'
import { isGathered, noticePart, noticeTurn } from './live-turns.ts'

/** The events that only a host has. */
export type HostEvent = ConsoleEvent & { readonly event: keyof HostEvents }

/** Applies one event; `mark` has the queries of a name read again soon. */
export function applyHostEvent(client: QueryClient, event: HostEvent, mark: (name: string) => void): void {
  switch (event.event) {
    case 'turn':
      noticeTurn(event.data)
      client.setQueryData<Pages>(turnListKey(event.data.conversation), pages => pages && withTurn(pages, event.data))
      // Read again all the same: a list that was asked for before the event may arrive after it.
      for (const name of ['turns', 'turn', 'conversations']) mark(name)
      return
    case 'part': {
      const { conversation, seq, part } = event.data
      noticePart(conversation, seq, part)
      if (part.type !== 'text' || !isGathered(conversation, seq)) mark('turn')
      return
    }
    case 'span': {
      const { conversation, seq } = event.data
      client.setQueryData<TurnDetail>(turnKey(conversation, seq), turn => turn && withSpan(turn, event.data))
      mark('turn')
      return
    }
    case 'inbox':
      mark('inbox')
      return
    case 'checkpoint':
    case 'head':
      mark('state')
      return
  }
}

type Pages = InfiniteData<List<TurnRow>, string | undefined>

/** The pages with a turn replaced, put in front where it is new, or taken out where it was undone. */
function withTurn(known: Pages, turn: TurnRow): Pages {
  if (turn.status === 'undone') {
    return { ...known, pages: known.pages.map(page => ({ ...page, items: page.items.filter(({ seq }) => seq !== turn.seq) })) }
  }
  const holds = known.pages.some(({ items }) => items.some(({ seq }) => seq === turn.seq))
  const pages = known.pages.map((page, index) => {
    if (holds) return { ...page, items: page.items.map(each => (each.seq === turn.seq ? { ...previewOf(each), ...turn } : each)) }
    return index > 0 ? page : { ...page, items: [turn, ...page.items].sort((a, b) => b.seq - a.seq) }
  })
  return { ...known, pages }
}

/** Events carry no preview. */
function previewOf({ preview }: TurnRow): Pick<TurnRow, 'preview'> {
  return preview === undefined ? {} : { preview }
}

function withSpan(turn: TurnDetail, span: HostEvents['span']): TurnDetail {
  const known = turn.spans.some(({ id }) => id === span.id)
  return { ...turn, spans: known ? turn.spans.map(each => (each.id === span.id ? span : each)) : [...turn.spans, span] }
}
