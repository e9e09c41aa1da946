/** Values that the server knows for an argument of a prompt or a variable of a template; a press takes one. */
import { useMutation } from '@tanstack/react-query'
import { type ReactNode, useState } from 'react'
import type { CompleteWish, OfferDetail } from '#contract'
import { request } from '../../api/client.ts'
import { Button } from '../../parts/button.tsx'
import { ProblemCard } from '../../parts/problem.tsx'
import type { JsonObject } from '../../parts/schema/typed.ts'
import { Text } from '../../parts/text.tsx'

export interface CompletionsProps {
  readonly server: string
  readonly detail: OfferDetail
  readonly value: JsonObject
  readonly take: (argument: string, value: string) => void
}

export function Completions({ server, detail: { offer, completes }, value, take }: CompletionsProps): ReactNode {
  const [argument, setArgument] = useState('')
  const find = useMutation({
    mutationFn: (asked: string) => {
      const typed = value[asked]
      const body: CompleteWish = {
        ...{ server, argument: asked, value: typeof typed === 'string' ? typed : '' },
        ...(offer.kind === 'prompt' ? { prompt: offer.name } : { template: offer.name }),
        context: Object.fromEntries(Object.entries(value).filter(([name, each]) => name !== asked && typeof each === 'string')),
      }
      return request('POST /complete', { body })
    },
  })
  if (completes.length === 0) return null
  return (
    <div className="mt-3 max-w-2xl">
      <p className="flex flex-wrap items-center gap-2">
        <span className="text-muted">The server knows values for</span>
        {completes.map(name => (
          <Button
            key={name}
            aria-pressed={name === argument}
            onClick={() => {
              setArgument(name)
              find.mutate(name)
            }}
          >
            <Text most={60}>{name}</Text>
          </Button>
        ))}
      </p>
      {find.error && <ProblemCard error={find.error} />}
      {find.data && (
        <div role="status" className="mt-2 flex max-h-40 flex-wrap gap-1.5 overflow-auto">
          {find.data.values.length === 0 && <span className="text-muted">None that begins like what is typed.</span>}
          {find.data.values.map(each => (
            <Button key={each} className="max-w-full" onClick={() => take(argument, each)}>
              <span className="truncate">
                <Text most={120}>{each}</Text>
              </span>
            </Button>
          ))}
          {find.data.hasMore && <span className="content-center text-muted">and more</span>}
        </div>
      )}
    </div>
  )
}
