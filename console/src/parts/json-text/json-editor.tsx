/** JSON as text. What is typed is kept as it is; the first mistake is said with its line, and the line is marked. */
import { type ReactNode, useId, useMemo, useRef } from 'react'
import { type JsonFault, readJson } from './read.ts'

export interface JsonEditorProps {
  readonly label: string
  readonly text: string
  readonly change: (text: string) => void
  readonly rows?: number
  /** An empty text is no mistake. */
  readonly optional?: boolean
  readonly disabled?: boolean
}

/** Longer texts get no numbers: the lines of a textarea are not known, so each number would be an element for nothing. */
const mostNumbered = 2000

export function JsonEditor({ label, text, change, rows = 4, optional = false, disabled = false }: JsonEditorProps): ReactNode {
  const said = useId()
  const numbers = useRef<HTMLPreElement>(null)
  const area = useRef<HTMLTextAreaElement>(null)
  const fault = useMemo<JsonFault | undefined>(() => {
    if (optional && text.trim() === '') return undefined
    const reading = readJson(text)
    return 'fault' in reading ? reading.fault : undefined
  }, [text, optional])
  const lines = text.split('\n').length
  const show = () => {
    area.current?.focus()
    if (fault) area.current?.setSelectionRange(fault.at, fault.at + 1)
  }
  return (
    <div>
      <div
        className={`flex overflow-hidden rounded-md border bg-raised font-mono text-[0.93rem] leading-6 ${fault ? 'border-danger' : 'border-line-strong'}`}
      >
        {lines <= mostNumbered && (
          <pre
            ref={numbers}
            aria-hidden="true"
            className="shrink-0 overflow-hidden border-r border-line bg-code py-1.5 text-right text-muted select-none"
            style={{ maxHeight: '60vh', width: `${Math.max(2, String(lines).length) + 1.5}ch` }}
          >
            {Array.from({ length: lines }, (_, index) => (
              <span
                key={`line ${index + 1}`}
                className={`block pr-1.5 ${fault?.line === index + 1 ? 'bg-danger-soft font-semibold text-danger' : ''}`}
              >
                {index + 1}
              </span>
            ))}
          </pre>
        )}
        <textarea
          ref={area}
          aria-label={label}
          aria-invalid={fault !== undefined}
          aria-describedby={said}
          rows={Math.min(24, Math.max(rows, lines))}
          wrap="off"
          spellCheck={false}
          autoComplete="off"
          disabled={disabled}
          className="block max-h-[60vh] flex-1 resize-none overflow-auto border-0 bg-raised px-2 py-1.5 leading-6 focus-visible:outline-offset-[-2px]"
          value={text}
          onChange={event => change(event.target.value)}
          onScroll={event => {
            if (numbers.current) numbers.current.scrollTop = event.currentTarget.scrollTop
          }}
        />
      </div>
      <p id={said} aria-live="polite" className="min-h-6 text-danger">
        {fault && (
          <button type="button" className="min-h-6 text-left underline" onClick={show}>
            {`Line ${fault.line}, column ${fault.column}: ${fault.message}`}
          </button>
        )}
      </p>
    </div>
  )
}
