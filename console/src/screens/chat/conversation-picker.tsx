/** Chooses the conversation, or begins a new one. */
import { useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { conversationList } from '../../api/host-lists.ts'
import { useRole } from '../../frame/context.ts'
import { Button } from '../../parts/button.tsx'
import { spellOut } from '../../parts/text.tsx'

/** A longer name is cut where it is chosen. */
const longest = 60

export function ConversationPicker({ conversation }: { readonly conversation: string }): ReactNode {
  const { data = [] } = useQuery(conversationList)
  const navigate = useNavigate()
  const operator = useRole('operator')
  const open = (id: string) => void navigate({ to: '/chat/$conversation', params: { conversation: id } })
  const known = data.some(({ id }) => id === conversation)
  return (
    <>
      <select
        aria-label="Conversation"
        className="max-w-56 min-w-0 font-semibold"
        value={conversation}
        onChange={event => open(event.target.value)}
      >
        {!known && <option value={conversation}>{nameText(conversation)}</option>}
        {data.map(({ id, turns, busy }) => (
          <option key={id} value={id}>
            {`${nameText(id)} (${turns}${busy ? ', running' : ''})`}
          </option>
        ))}
      </select>
      {operator && (
        <Button look="quiet" onClick={() => open(newName())}>
          New
        </Button>
      )}
    </>
  )
}

function nameText(id: string): string {
  const text = spellOut(id)
  return text.length > longest ? `${text.slice(0, longest)}…` : text
}

/** By the time of this machine, so that it is found again by when it was. */
function newName(): string {
  const now = new Date()
  const parts = [now.getMonth() + 1, now.getDate(), now.getHours(), now.getMinutes(), now.getSeconds()]
  return `web-${now.getFullYear()}${parts.map(part => String(part).padStart(2, '0')).join('')}`
}
