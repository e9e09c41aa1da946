/** What the palette finds of an agent host: conversations, states, and whatever id was typed. */
import { useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useMemo } from 'react'
import { conversationList, stateSets } from '../api/host-lists.ts'
import { useConsole } from './context.ts'

/** A place to go to. */
export interface Choice {
  readonly kind: string
  readonly title: string
  run(): void
}

/** Ids of events and turns hold no spaces, and are longer than most words. */
const idLike = /^\S{8,}$/

export function useHostChoices(text: string): readonly Choice[] {
  const { screens } = useConsole().self
  const navigate = useNavigate()
  const talks = useQuery({ ...conversationList, enabled: screens.includes('chat') }).data
  const sets = useQuery({ ...stateSets, enabled: screens.includes('state') }).data
  const known = useMemo<readonly Choice[]>(
    () => [
      ...(talks ?? []).map(({ id }) => ({
        kind: 'chat',
        title: id,
        run: () => void navigate({ to: '/chat/$conversation', params: { conversation: id } }),
      })),
      ...(sets ?? []).map(({ server, featureSet }) => ({
        kind: 'state',
        title: `${server} / ${featureSet}`,
        run: () => void navigate({ to: '/state/$server/$set', params: { server, set: featureSet } }),
      })),
    ],
    [talks, sets, navigate],
  )
  const id = text.trim()
  if (!screens.includes('explain') || !idLike.test(id)) return known
  return [...known, { kind: 'explain', title: id, run: () => void navigate({ to: '/explain/$id', params: { id } }) }]
}
