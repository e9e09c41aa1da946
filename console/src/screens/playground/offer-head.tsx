/** What the server says about one thing that it offers. */
import { type ReactNode, useState } from 'react'
import type { OfferDetail } from '#contract'
import { Badge } from '../../parts/badge.tsx'
import { Json } from '../../parts/json.tsx'
import { Text } from '../../parts/text.tsx'

/** Longer descriptions are unfolded. */
const firstCharacters = 600

export function OfferHead({ detail: { offer, definition, revision } }: { readonly detail: OfferDetail }): ReactNode {
  const { kind, name, title, readOnly, destructive, idempotent, task, mimeType } = offer
  const whole = typeof definition['description'] === 'string' ? definition['description'] : (offer.description ?? '')
  const [all, setAll] = useState(false)
  return (
    <header>
      <div className="flex flex-wrap items-baseline gap-2">
        <h2 className="min-w-0 text-[1.14rem] font-semibold break-all">
          <Text most={200}>{name}</Text>
        </h2>
        {title !== undefined && title !== name && (
          <span className="text-muted">
            <Text most={120}>{title}</Text>
          </span>
        )}
        {kind === 'tool' && readOnly === true && <Badge>reads only</Badge>}
        {kind === 'tool' &&
          readOnly !== true &&
          (destructive === true ? <Badge tone="warn">destructive</Badge> : readOnly === false && <Badge>writes</Badge>)}
        {idempotent === true && <Badge>idempotent</Badge>}
        {task === 'required' && <Badge tone="warn">only as a task</Badge>}
        {mimeType !== undefined && (
          <span className="text-muted">
            <Text most={80}>{mimeType}</Text>
          </span>
        )}
      </div>
      {whole !== '' && (
        <p className="mt-1 max-w-3xl break-words whitespace-pre-wrap">
          <Text>{all ? whole : whole.slice(0, firstCharacters)}</Text>
          {!all && whole.length > firstCharacters && (
            <button type="button" className="ml-1 min-h-6 underline" onClick={() => setAll(true)}>
              {`… all ${whole.length.toLocaleString('en')} characters`}
            </button>
          )}
        </p>
      )}
      <details className="mt-1">
        <summary className="min-h-6 text-muted">Definition at {revision}</summary>
        <Json value={definition} label="Definition" />
      </details>
    </header>
  )
}
