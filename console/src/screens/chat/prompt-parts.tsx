/** Who put how much into the prompt, and from where on the provider's cache was lost. */
import { type ReactNode, useState } from 'react'
import type { PromptSection, TurnPrompt } from '#contract'
import { Badge } from '../../parts/badge.tsx'
import { Card } from '../../parts/card.tsx'
import { ScrollRegion } from '../../parts/scroll-region.tsx'
import { Text } from '../../parts/text.tsx'

const own: Readonly<Record<string, string>> = {
  host: 'System prompt of the host',
  history: 'Earlier turns',
  user: 'The message',
  tools: 'Definitions of tools',
}

const positions = { system: 'in the system prompt', beforeUser: 'before the message', afterUser: 'after the message' } as const

export function PromptParts({ prompt: { model, sections, tokens, left } }: { readonly prompt: TurnPrompt }): ReactNode {
  const total = Math.max(1, tokens)
  const broken = sections.findIndex(({ changed }) => changed)
  return (
    <Card title="Prompt" scope={`${tokens.toLocaleString('en')} tokens, estimated · ${model}`}>
      <div aria-hidden="true" className="flex h-4 overflow-hidden rounded">
        {sections.map((section, index) => (
          <span
            key={index}
            className={`${section.from in own ? 'bg-line-strong' : 'bg-bar'} ${index > 0 ? 'border-l border-raised' : ''} ${index === broken ? 'border-l-3 border-l-danger' : ''}`}
            style={{ width: `${(section.tokens / total) * 100}%` }}
          />
        ))}
      </div>
      <ul aria-label="Parts of the prompt" className="mt-2">
        {sections.map((section, index) => (
          <Part key={index} section={section} share={section.tokens / total} cacheLost={index === broken} />
        ))}
      </ul>
      {left > 0 && <p className="mt-2 text-muted">{`${left} earlier turns did not fit and were left out.`}</p>}
    </Card>
  )
}

interface PartProps {
  readonly section: PromptSection
  readonly share: number
  readonly cacheLost: boolean
}

function Part({ section, share, cacheLost }: PartProps): ReactNode {
  const { from, featureSet, position, tokens, content, length = 0 } = section
  const [open, setOpen] = useState(false)
  const name = own[from] ?? [from, featureSet].filter(Boolean).join('/')
  return (
    <li className="border-t border-line py-1 first:border-t-0">
      <div className="flex flex-wrap items-baseline gap-x-2">
        <span className="min-w-0 flex-1 break-words">
          <Text most={150}>{name}</Text>
          {!(from in own) && position && <span className="text-muted"> {positions[position]}</span>}
        </span>
        {cacheLost && <Badge tone="warn">changed: cache lost from here</Badge>}
        {content !== undefined && (
          <button type="button" aria-expanded={open} className="min-h-6 text-muted underline" onClick={() => setOpen(!open)}>
            {open ? 'Hide' : 'Read'}
          </button>
        )}
        <span className="w-24 text-right tabular-nums">
          {tokens.toLocaleString('en')} <span className="text-muted">{(share * 100).toFixed(0)} %</span>
        </span>
      </div>
      {open && content !== undefined && (
        <div className="mt-1">
          <ScrollRegion label={`Text of ${name}`}>
            <Text>{content}</Text>
          </ScrollRegion>
          {content.length < length && (
            <p className="text-muted">{`${content.length.toLocaleString('en')} of ${length.toLocaleString('en')} characters`}</p>
          )}
        </div>
      )}
    </li>
  )
}
