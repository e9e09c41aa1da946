/** The addresses of the screens that an agent host has. */
import { type AnyRootRoute, createRoute, useParams, useSearch } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { Chat } from './screens/chat/chat.tsx'
import { Explain } from './screens/explain/explain.tsx'
import { Inbox } from './screens/inbox/inbox.tsx'
import { State } from './screens/state/state.tsx'
import { texts } from './search-texts.ts'

/** Routes below `root`, for the tree of routes. */
export function hostRoutes(root: AnyRootRoute) {
  const parent = { getParentRoute: () => root }
  const chat = { validateSearch: texts('span'), component: ChatScreen }
  const state = { validateSearch: texts('at'), component: StateScreen }
  const explain = { validateSearch: texts('node'), component: ExplainScreen }
  return [
    createRoute({ ...parent, ...chat, path: '/chat' }),
    createRoute({ ...parent, ...chat, path: '/chat/$conversation' }),
    createRoute({ ...parent, ...chat, path: '/chat/$conversation/$seq' }),
    createRoute({ ...parent, path: '/inbox', validateSearch: texts('q', 'event'), component: InboxScreen }),
    createRoute({ ...parent, ...state, path: '/state' }),
    createRoute({ ...parent, ...state, path: '/state/$server/$set' }),
    createRoute({ ...parent, ...explain, path: '/explain' }),
    createRoute({ ...parent, ...explain, path: '/explain/$id' }),
  ]
}

/** What the address names, whichever of the routes of a screen it is. */
function useNames(): Readonly<Record<string, string | undefined>> {
  return useParams({ strict: false })
}

function useTexts(): Readonly<Record<string, string | undefined>> {
  return useSearch({ strict: false })
}

function ChatScreen(): ReactNode {
  const { conversation, seq } = useNames()
  const { span } = useTexts()
  const turn = seq !== undefined && /^\d+$/.test(seq) ? Number(seq) : undefined
  return <Chat conversation={conversation} turn={turn} span={span} />
}

function InboxScreen(): ReactNode {
  const { q = '', event } = useTexts()
  return <Inbox filter={q} event={event} />
}

function StateScreen(): ReactNode {
  const { server, set } = useNames()
  const { at } = useTexts()
  return <State server={server} set={set} at={at} />
}

function ExplainScreen(): ReactNode {
  const { id } = useNames()
  const { node } = useTexts()
  return <Explain id={id} node={node} />
}
