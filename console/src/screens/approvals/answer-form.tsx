/**
 * The answer to an approval. It names the digest of what was shown, so that nothing else can be approved by it; a yes does nothing in the
 * first moment after the card appeared, when a click may have been meant for something else.
 */
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { type ReactNode, useEffect, useId, useMemo, useState } from 'react'
import type { Answered, Approval } from '#contract'
import { ProblemError, request } from '../../api/client.ts'
import { useDisconnected } from '../../frame/connection-banner.tsx'
import { type KeyMap, useKeys } from '../../frame/keys.ts'
import { Button } from '../../parts/button.tsx'
import { ProblemCard } from '../../parts/problem.tsx'
import { Text } from '../../parts/text.tsx'
import { timeText } from '../../parts/time.tsx'
import { asksForContent, ContentForm, contentOf, firstContent } from './content-form.tsx'

const inertMs = 700

type Choice = 'no' | 'once' | 'longer'

type Reach = NonNullable<Approval['wider']>[number]['covers'] | 'shown'

export function AnswerForm({ approval }: { readonly approval: Approval }): ReactNode {
  const { id, digest, refuseOnly, lasts, untilChanged, wider = [] } = approval
  const group = useId()
  const client = useQueryClient()
  const disconnected = useDisconnected()
  const ready = useReady(digest)
  const longer = lasts.filter(each => each !== 'once')
  const [choice, setChoice] = useState<Choice>('no')
  const [time, setTime] = useState(longer[0] ?? 'once')
  const [reason, setReason] = useState('')
  const [reach, setReach] = useState<Reach>('shown')
  const filled = asksForContent(approval)
  const [draft, setDraft] = useState(() => firstContent(approval))
  const content = contentOf(approval, draft)
  const send = useMutation({
    mutationFn: () => {
      const yes = choice !== 'no'
      const body = {
        ...{ yes, digest, ...(reason !== '' && { reason }) },
        ...(yes && { for: choice === 'once' ? 'once' : time }),
        ...(yes && reach !== 'shown' && { covers: reach }),
        ...(yes && filled && content !== undefined && { content }),
      }
      return request('POST /approvals/:id', { path: { id }, body })
    },
    onSettled: () => client.invalidateQueries({ queryKey: ['approvals'] }),
  })
  const keys = useMemo<KeyMap>(
    () => ({
      n: () => setChoice('no'),
      o: () => refuseOnly === undefined && setChoice('once'),
      y: () => refuseOnly === undefined && setChoice(longer.length > 0 ? 'longer' : 'once'),
    }),
    [refuseOnly, longer.length],
  )
  useKeys(keys)
  const blocked = disconnected || send.isPending || (choice !== 'no' && (!ready || (filled && content === undefined)))
  return (
    <form
      className="mt-4 border-t border-line pt-4"
      onSubmit={event => {
        event.preventDefault()
        if (!blocked) send.mutate()
      }}
    >
      {filled && <ContentForm approval={approval} draft={draft} change={setDraft} strict={choice !== 'no'} />}
      <fieldset className="flex flex-wrap items-center gap-x-5 gap-y-2">
        <legend className="label mb-1">Answer</legend>
        <Radio name={group} label="No" keyName="n" checked={choice === 'no'} choose={() => setChoice('no')} />
        {refuseOnly === undefined && (
          <Radio
            name={group}
            label={untilChanged ? 'Yes, until it changes' : filled ? 'Send this' : 'Only this once'}
            keyName="o"
            checked={choice === 'once'}
            choose={() => setChoice('once')}
          />
        )}
        {refuseOnly === undefined && longer.length > 0 && (
          <span className="flex items-center gap-2">
            <Radio name={group} label="Yes, for" keyName="y" checked={choice === 'longer'} choose={() => setChoice('longer')} />
            <select aria-label="How long the yes holds" value={time} onChange={event => setTime(event.target.value)}>
              {longer.map(each => (
                <option key={each}>{each}</option>
              ))}
            </select>
          </span>
        )}
      </fieldset>
      {choice !== 'no' && wider.length > 0 && (
        <label className="mt-3 block">
          <span className="label mb-1 block">What the yes covers</span>
          <select className="max-w-full" value={reach} onChange={event => setReach(event.target.value as Reach)}>
            <option value="shown">exactly what is shown</option>
            {wider.map(({ covers }) => (
              <option key={covers} value={covers}>
                {covers === 'tool' ? 'every call of the tool' : 'everything in the scope'}
              </option>
            ))}
          </select>
          {reach !== 'shown' && (
            <span className="mt-1 block text-warn">
              <Text most={1000}>{wider.find(({ covers }) => covers === reach)?.text ?? ''}</Text>
            </span>
          )}
        </label>
      )}
      <div className="mt-3 flex flex-wrap items-end gap-3">
        <label className="min-w-48 flex-1">
          <span className="label mb-1 block">Reason, for the audit log</span>
          <input className="w-full" maxLength={500} value={reason} onChange={event => setReason(event.target.value)} />
        </label>
        <Button type="submit" look={choice === 'no' ? 'danger' : 'primary'} disabled={blocked}>
          {choice === 'no' ? 'Refuse' : filled ? 'Send' : 'Approve'}
        </Button>
      </div>
      {send.error && <Refusal error={send.error} />}
    </form>
  )
}

/** False for a moment after the card appeared, or what it shows changed. */
function useReady(digest: string): boolean {
  const [ready, setReady] = useState<string>()
  useEffect(() => {
    const timer = setTimeout(() => setReady(digest), inertMs)
    return () => clearTimeout(timer)
  }, [digest])
  return ready === digest
}

interface RadioProps {
  readonly name: string
  readonly label: string
  readonly keyName: string
  readonly checked: boolean
  readonly choose: () => void
}

function Radio({ name, label, keyName, checked, choose }: RadioProps): ReactNode {
  return (
    <label className="flex min-h-8 items-center gap-2">
      <input type="radio" name={name} checked={checked} onChange={choose} />
      {label} <kbd className="rounded border border-line px-1 font-mono text-[0.79rem] text-muted">{keyName}</kbd>
    </label>
  )
}

function Refusal({ error }: { readonly error: unknown }): ReactNode {
  if (!(error instanceof ProblemError) || error.problem.code !== 'ALREADY_ANSWERED') {
    return (
      <div className="mt-3">
        <ProblemCard error={error} />
      </div>
    )
  }
  const { by = 'somebody else', at, yes } = (error.problem.details ?? {}) as Partial<Answered>
  return (
    <p role="alert" className="mt-3 rounded-lg bg-warn-soft p-3 text-warn">
      {`Your answer does not count: ${by} ${yes ? 'approved' : 'refused'} it${at === undefined ? '' : ` at ${timeText(at)}`}.`}
    </p>
  )
}
