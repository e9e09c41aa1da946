/** Writes to the agent. Enter sends, Shift and Enter begins a line; a line that begins with a slash is completed from prompts of servers. */
import { keepPreviousData, useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { type KeyboardEvent, type ReactNode, useEffect, useId, useRef, useState } from 'react'
import { request } from '../../api/client.ts'
import { useDisconnected } from '../../frame/connection-banner.tsx'
import { useRole } from '../../frame/context.ts'
import { Button } from '../../parts/button.tsx'
import { ProblemCard } from '../../parts/problem.tsx'
import { Text } from '../../parts/text.tsx'
import { AttachButton, type Attachment, AttachmentChips } from './attachments.tsx'

export interface ComposerProps {
  readonly conversation: string
  readonly draft: string
  readonly setDraft: (text: string) => void
  /** A turn runs: the next one waits for it. */
  readonly busy: boolean
}

/** As many as can be sent. */
const longest = 200_000

export function Composer({ conversation, draft, setDraft, busy }: ComposerProps): ReactNode {
  const operator = useRole('operator')
  const disconnected = useDisconnected()
  const client = useQueryClient()
  const [attached, setAttached] = useState<readonly Attachment[]>([])
  const field = useRef<HTMLTextAreaElement>(null)
  const send = useMutation({
    mutationFn: (text: string) =>
      request('POST /conversations/:conversation/turns', {
        path: { conversation },
        body: { text, ...(attached.length > 0 && { attach: attached.map(({ server, uri }) => ({ server, uri })) }) },
      }),
    onSuccess: () => {
      setDraft('')
      setAttached([])
      void client.invalidateQueries({ queryKey: ['turns', conversation] })
      void client.invalidateQueries({ queryKey: ['conversations'] })
    },
  })
  const completions = useCompletions(conversation, draft, operator)
  const list = useId()
  const [at, setAt] = useState(0)
  const index = Math.min(at, completions.length - 1)
  useEffect(() => {
    const element = field.current
    if (element === null) return
    element.style.height = 'auto'
    element.style.height = `${Math.min(240, Math.max(draft === '' ? 0 : element.scrollHeight, 40))}px`
  }, [draft])
  if (!operator)
    return <p className="border-t border-line p-4 text-muted">You can read. Sending messages needs the role operator.</p>
  const blocked = disconnected || send.isPending || draft.trim() === ''
  const choose = (line: string) => {
    setDraft(line.endsWith('=') ? line : `${line} `)
    setAt(0)
    field.current?.focus()
  }
  const press = (event: KeyboardEvent<HTMLTextAreaElement>) => {
    const chosen = completions[index]
    if (event.key === 'Escape') return event.currentTarget.blur()
    if (event.key === 'Enter' && !event.shiftKey && !event.nativeEvent.isComposing) {
      event.preventDefault()
      if (!blocked) send.mutate(draft)
    } else if (chosen !== undefined && event.key === 'Tab' && !event.shiftKey) {
      event.preventDefault()
      choose(chosen)
    } else if (chosen !== undefined && (event.key === 'ArrowDown' || event.key === 'ArrowUp')) {
      event.preventDefault()
      setAt((index + (event.key === 'ArrowDown' ? 1 : -1) + completions.length) % completions.length)
    }
  }
  return (
    <form
      className="relative border-t border-line bg-raised p-3"
      onSubmit={event => {
        event.preventDefault()
        if (!blocked) send.mutate(draft)
      }}
    >
      {completions.length > 0 && (
        <div
          id={list}
          role="listbox"
          aria-label="Prompts"
          className="card absolute inset-x-3 bottom-full mb-1 max-h-56 overflow-auto p-1 shadow-lg"
        >
          {completions.map((line, place) => (
            // biome-ignore lint/a11y/useKeyWithClickEvents: the keys are those of the message field, which keeps the focus
            <div
              key={line}
              id={`${list}-${place}`}
              role="option"
              tabIndex={-1}
              aria-selected={place === index}
              className={`cursor-pointer truncate rounded px-2 py-1 font-mono ${place === index ? 'bg-accent-soft' : 'hover:bg-hover'}`}
              onClick={() => choose(line)}
            >
              <Text most={200}>{line}</Text>
            </div>
          ))}
          <p className="px-2 pt-1 text-[0.86rem] text-muted">Tab completes</p>
        </div>
      )}
      {send.error && (
        <div className="mb-2">
          <ProblemCard error={send.error} />
        </div>
      )}
      <AttachmentChips attached={attached} change={setAttached} />
      <div className="flex items-end gap-2">
        <AttachButton attached={attached} change={setAttached} />
        <textarea
          ref={field}
          data-filter=""
          rows={1}
          aria-controls={completions.length > 0 ? list : undefined}
          aria-autocomplete="list"
          aria-activedescendant={completions.length > 0 ? `${list}-${index}` : undefined}
          aria-label="Message"
          placeholder={busy ? 'Say something, it waits for the turn' : 'Say something, / for prompts'}
          maxLength={longest}
          className="min-h-10 min-w-0 flex-1 resize-none py-2"
          value={draft}
          onChange={event => {
            setDraft(event.target.value)
            setAt(0)
          }}
          onKeyDown={press}
        />
        <Button type="submit" look="primary" className="min-h-10" disabled={blocked}>
          Send
        </Button>
      </div>
    </form>
  )
}

const none: readonly string[] = []

/** Lines that a beginning with a slash may become. */
function useCompletions(conversation: string, line: string, operator: boolean): readonly string[] {
  const slash = operator && /^\/(?!\/)[^\n]*$/.test(line)
  const { data = none } = useQuery({
    queryKey: ['complete', conversation, line],
    enabled: slash,
    placeholderData: keepPreviousData,
    queryFn: async ({ signal }) =>
      (await request('GET /conversations/:conversation/complete', { path: { conversation }, query: { line }, signal })).items,
  })
  return slash ? data.filter(each => each !== line && each.startsWith(line)) : none
}
