/** One step of a turn: what went into a call and what came out, what an inference used, what a hook did. */
import { Link } from '@tanstack/react-router'
import { type ReactNode, useState } from 'react'
import type { TurnCall, TurnDetail, TurnHook, TurnInference, TurnSpan, Why } from '#contract'
import { request } from '../../api/client.ts'
import { Button } from '../../parts/button.tsx'
import { Json } from '../../parts/json.tsx'
import { ProblemCard } from '../../parts/problem.tsx'
import { ScrollRegion } from '../../parts/scroll-region.tsx'
import { Text } from '../../parts/text.tsx'
import { durationText } from '../../parts/time.tsx'
import { callSigns } from './turn-words.tsx'

export interface StepDetailsProps {
  readonly turn: TurnDetail
  readonly span: TurnSpan
  readonly close: () => void
}

export function StepDetails({ turn, span, close }: StepDetailsProps): ReactNode {
  return (
    <section aria-label="Step" className="mt-3 border-t border-line pt-3">
      <div className="mb-2 flex items-baseline gap-2">
        <h3 className="min-w-0 flex-1 font-semibold break-words">
          <Text most={200}>{span.name}</Text>
        </h3>
        <Button look="quiet" onClick={close}>
          Close
        </Button>
      </div>
      <Content turn={turn} span={span} />
    </section>
  )
}

function Content({ turn, span: { kind, n = 0, note } }: Omit<StepDetailsProps, 'close'>): ReactNode {
  const call = turn.calls.find(each => each.n === n)
  const inference = turn.inferences.find(each => each.n === n)
  const hook = turn.hooks[n]
  if ((kind === 'call' || kind === 'question') && call) return <Call turn={turn} call={call} />
  if (kind === 'inference' && inference) return <Inference inference={inference} turn={turn} />
  if (kind === 'hook' && hook) return <Hook hook={hook} />
  return <p className="text-muted">{note ?? 'It waited until the turns before it had ended.'}</p>
}

type Fact = readonly [name: string, value: string | undefined]

function Facts({ facts }: { readonly facts: readonly Fact[] }): ReactNode {
  return (
    <dl className="grid grid-cols-[auto_1fr] gap-x-4 gap-y-1">
      {facts
        .filter(([, value]) => value !== undefined)
        .map(([name, value = '']) => (
          <div key={name} className="contents">
            <dt className="text-muted">{name}</dt>
            <dd className="min-w-0 break-words">
              <Text most={500}>{value}</Text>
            </dd>
          </div>
        ))}
    </dl>
  )
}

function Reason({ why }: { readonly why: Why | undefined }): ReactNode {
  if (why === undefined) return null
  return (
    <div className="my-2 rounded-lg border border-warn-line bg-warn-soft p-3">
      <p>
        <Text most={1000}>{why.message}</Text>
      </p>
      <p className="text-muted">
        <Text most={1000}>{why.fix}</Text> <code>{why.code}</code>
      </p>
    </div>
  )
}

function Call({ turn, call }: { readonly turn: TurnDetail; readonly call: TurnCall }): ReactNode {
  const { server, tool, featureSet, rule, units, asked, declined, compensation, rolledBack, state, status, ms, why } = call
  const set = state?.featureSet ?? featureSet
  return (
    <div className="space-y-3">
      <Facts
        facts={[
          ['Tool', server === undefined ? `${tool}, of the host` : `${server}/${tool}`],
          ['Outcome', callSigns[status][1] + (rolledBack ? ', rolled back by its server' : '')],
          ['Took', ms === undefined ? undefined : durationText(ms)],
          ['Allowed by', rule],
          ['Asked', asked && `${asked.yes ? 'yes' : 'no'}${asked.by ? ` by ${asked.by}` : ''} after ${durationText(asked.ms)}`],
          ['Declined', declined],
          ['Costs', units === undefined || units === 0 ? undefined : `${units} units of its server`],
          ['Undone by', compensation ?? (state && server !== undefined ? 'a rollback of its state' : undefined)],
        ]}
      />
      <Reason why={why} />
      {state && server !== undefined && set !== undefined && (
        <p>
          <Link
            to="/state/$server/$set"
            params={{ server, set }}
            search={{ at: state.after }}
            className="text-accent-strong underline"
          >
            State of <Text most={100}>{set}</Text> at <Text most={60}>{state.after}</Text>
          </Link>
        </p>
      )}
      {call.arguments !== undefined && (
        <div>
          <h4 className="label mb-1">Arguments</h4>
          <Json value={call.arguments} label="Arguments" />
        </div>
      )}
      <Result turn={turn} call={call} />
    </div>
  )
}

function Result({ turn: { conversation, seq }, call }: { readonly turn: TurnDetail; readonly call: TurnCall }): ReactNode {
  const [whole, setWhole] = useState<string>()
  const [error, setError] = useState<unknown>()
  const { result, length = 0, n } = call
  if (result === undefined) return null
  const shown = whole ?? result
  const path = { conversation, seq: String(seq), call: String(n) }
  const read = () =>
    request('GET /conversations/:conversation/turns/:seq/calls/:call', { path })
      .then(read => setWhole(read.result))
      .catch(setError)
  return (
    <div>
      <h4 className="label mb-1">Result, as the model saw it</h4>
      <ScrollRegion label="Result">
        <Text>{shown}</Text>
      </ScrollRegion>
      {shown.length < length && (
        <p className="mt-2 flex items-center gap-3 text-muted">
          {`${shown.length.toLocaleString('en')} of ${length.toLocaleString('en')} characters`}
          <Button onClick={() => void read()}>Show all</Button>
        </p>
      )}
      {error !== undefined && <ProblemCard error={error} />}
    </div>
  )
}

function Inference({ inference, turn }: { readonly inference: TurnInference; readonly turn: TurnDetail }): ReactNode {
  const { model, firstMs, ms, inputTokens, outputTokens, calls } = inference
  const names = calls.flatMap(n => turn.calls.find(call => call.n === n)?.name ?? [])
  return (
    <Facts
      facts={[
        ['Model', model ?? turn.prompt?.model],
        ['First word', firstMs === undefined ? undefined : `after ${durationText(firstMs)}`],
        ['Took', ms === undefined ? undefined : durationText(ms)],
        ['Tokens', `${inputTokens.toLocaleString('en')} read, ${outputTokens.toLocaleString('en')} written`],
        ['Asked for', names.length === 0 ? undefined : names.join(', ')],
      ]}
    />
  )
}

const outcomes: Readonly<Record<TurnHook['outcome'], string>> = {
  success: 'answered',
  failure: 'failed',
  timeout: 'took too long',
  refused: 'was skipped, because it failed before',
  dropped: 'answered without effect',
}

function Hook({ hook: { server, featureSet, hook, outcome, ms, why } }: { readonly hook: TurnHook }): ReactNode {
  return (
    <>
      <Facts
        facts={[
          ['Server', server],
          ['Feature set', featureSet],
          ['When', `${hook} the answer`],
          ['Outcome', `${outcomes[outcome]} (${durationText(ms)})`],
        ]}
      />
      <Reason why={why} />
    </>
  )
}
