/** Serves a tape as a mock server, with faults where they are wanted: what does a client do when an answer is late, cut or lost? */
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { type ReactNode, useState } from 'react'
import type { TapeFaultKind, TapeRow } from '#contract'
import { request } from '../../api/client.ts'
import { tapeList } from '../../api/lists.ts'
import { useDisconnected } from '../../frame/connection-banner.tsx'
import { useRole } from '../../frame/context.ts'
import { Button } from '../../parts/button.tsx'
import { ProblemCard } from '../../parts/problem.tsx'
import { Text } from '../../parts/text.tsx'

const kinds: Readonly<Record<TapeFaultKind, string>> = {
  delay: 'answers come late',
  drop: 'answers are lost',
  duplicate: 'answers come twice',
  reorder: 'answers come in another order',
  cut: 'the connection is cut within an answer',
  error: 'an error comes instead of an answer',
  garbage: 'something that is no JSON comes',
}

interface Fault {
  readonly kind: TapeFaultKind
  readonly value: string
  readonly method: string
  readonly chance: string
}

/** As on the command line: `delay=500ms@tools/call:0.2`. */
export function faultText({ kind, value, method, chance }: Fault): string {
  // The value of another kind stays in the form and is not sent.
  const valued = value !== '' && (kind === 'delay' || kind === 'error')
  return `${kind}${valued ? `=${value}` : ''}${method && `@${method}`}${chance && `:${chance}`}`
}

export function TapeService({ tape }: { readonly tape: TapeRow }): ReactNode {
  const client = useQueryClient()
  const operator = useRole('operator')
  const disconnected = useDisconnected()
  const [faults, setFaults] = useState<readonly Fault[]>([])
  const [seed, setSeed] = useState('1')
  const path = { name: tape.name }
  const onSettled = () => client.invalidateQueries({ queryKey: tapeList.queryKey })
  const start = useMutation({
    mutationFn: () =>
      request('POST /tapes/:name/serve', { path, body: { faults: faults.map(faultText), seed: Number(seed) || 1 } }),
    onSettled,
  })
  const stop = useMutation({ mutationFn: () => request('DELETE /tapes/:name/serve', { path }), onSettled })
  const busy = disconnected || start.isPending || stop.isPending
  const change = (at: number, next: Partial<Fault>) =>
    setFaults(faults.map((each, index) => (index === at ? { ...each, ...next } : each)))
  return (
    <section aria-label="Serve" className="space-y-2">
      <h3 className="font-semibold">Serve it as a mock server</h3>
      {tape.serving !== undefined ? (
        <>
          <p role="status">
            Clients reach it at{' '}
            <code>
              <Text most={200}>{tape.serving.url}</Text>
            </code>
            {tape.serving.faults.length > 0 && <Text most={400}>{`, with ${tape.serving.faults.join(', ')}`}</Text>}.
          </p>
          {operator && (
            <Button disabled={busy} onClick={() => stop.mutate()}>
              Stop serving
            </Button>
          )}
        </>
      ) : (
        operator && (
          <>
            {faults.map((fault, at) => (
              <FaultRow
                key={`fault ${at + 1}`}
                name={`Fault ${at + 1}`}
                fault={fault}
                change={next => change(at, next)}
                remove={() => setFaults(faults.filter((_, index) => index !== at))}
              />
            ))}
            <div className="flex flex-wrap items-center gap-2">
              <Button
                disabled={faults.length >= 32}
                onClick={() => setFaults([...faults, { kind: 'delay', value: '500ms', method: '', chance: '' }])}
              >
                Add a fault
              </Button>
              <label className="flex items-center gap-2">
                seed
                <input className="w-20" inputMode="numeric" value={seed} onChange={event => setSeed(event.target.value)} />
              </label>
              <Button look="primary" disabled={busy} onClick={() => start.mutate()}>
                Serve
              </Button>
            </div>
          </>
        )
      )}
      {start.error && <ProblemCard error={start.error} />}
      {stop.error && <ProblemCard error={stop.error} />}
    </section>
  )
}

interface FaultRowProps {
  readonly name: string
  readonly fault: Fault
  readonly change: (next: Partial<Fault>) => void
  readonly remove: () => void
}

function FaultRow({ name, fault, change, remove }: FaultRowProps): ReactNode {
  return (
    <fieldset aria-label={name} className="flex flex-wrap items-center gap-2 border-l-2 border-line pl-3">
      <select
        aria-label="What happens"
        className="max-w-full"
        value={fault.kind}
        onChange={event => change({ kind: event.target.value as TapeFaultKind })}
      >
        {Object.entries(kinds).map(([kind, does]) => (
          <option key={kind} value={kind}>
            {does}
          </option>
        ))}
      </select>
      {(fault.kind === 'delay' || fault.kind === 'error') && (
        <input
          aria-label={fault.kind === 'delay' ? 'How late' : 'Number of the error'}
          className="w-24"
          placeholder={fault.kind === 'delay' ? '500ms' : '-32603'}
          value={fault.value}
          onChange={event => change({ value: event.target.value })}
        />
      )}
      <input
        aria-label="Only for this method"
        className="w-36"
        placeholder="any method"
        value={fault.method}
        onChange={event => change({ method: event.target.value })}
      />
      <input
        aria-label="Probability"
        className="w-20"
        inputMode="decimal"
        placeholder="always"
        value={fault.chance}
        onChange={event => change({ chance: event.target.value })}
      />
      <Button look="quiet" aria-label={`Remove ${name}`} onClick={remove}>
        ✕
      </Button>
    </fieldset>
  )
}
