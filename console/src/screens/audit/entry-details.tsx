/** All facts of an audit entry. A press on a fact filters by it. */
import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import type { AuditEntry } from '#contract'
import { useConsole } from '../../frame/context.ts'
import { Button } from '../../parts/button.tsx'
import { Json } from '../../parts/json.tsx'
import { Text } from '../../parts/text.tsx'
import { Time } from '../../parts/time.tsx'

export interface EntryDetailsProps {
  readonly entry: AuditEntry
  readonly narrow: (name: string, value: string) => void
  readonly close: () => void
}

const searchable = new Set(['server', 'tool', 'client', 'subject', 'rule', 'code', 'by', 'event', 'outcome', 'correlation'])

export function EntryDetails({ entry, narrow, close }: EntryDetailsProps): ReactNode {
  const { position, at, event, correlation, owner, target, outcome, more = {} } = entry
  const { arguments: given, ...rest } = more
  const explained = useConsole().self.screens.includes('explain') ? (correlation ?? rest['eventId']) : undefined
  const facts = Object.entries({ event, target, outcome, correlation, owner, ...rest }).filter(([, value]) => value !== undefined)
  return (
    <aside aria-label="Audit entry" className="min-h-0 overflow-auto border-line bg-raised p-4 lg:w-96 lg:border-l">
      <div className="mb-2 flex items-center justify-between">
        <h2 className="font-semibold">{position === undefined ? 'Entry' : `Entry ${position}`}</h2>
        <Button look="quiet" onClick={close}>
          Close
        </Button>
      </div>
      <dl className="space-y-2">
        <div>
          <dt className="label">time</dt>
          <dd>
            <Time at={at} />
          </dd>
        </div>
        {facts.map(([name, value]) => (
          <div key={name}>
            <dt className="label">{name.replaceAll('_', ' ')}</dt>
            <dd className="break-words">
              {searchable.has(name) ? (
                <button
                  type="button"
                  className="min-h-6 text-left break-all underline"
                  onClick={() => narrow(name, String(value))}
                >
                  <Text most={500}>{String(value)}</Text>
                </button>
              ) : (
                <Text most={2000}>{String(value)}</Text>
              )}
            </dd>
          </div>
        ))}
      </dl>
      {explained !== undefined && (
        <p className="mt-3">
          <Link to="/explain/$id" params={{ id: String(explained) }} className="text-accent-strong underline">
            Why
          </Link>
        </p>
      )}
      {given !== undefined && (
        <section className="mt-3">
          <h3 className="label mb-1">arguments</h3>
          <Json value={parsed(String(given))} label="Arguments" />
        </section>
      )}
    </aside>
  )
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
