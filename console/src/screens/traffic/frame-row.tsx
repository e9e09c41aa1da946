/** A frame in the list: when, which way, what, how it went, how long, how large. */
import type { ReactNode } from 'react'
import type { FrameRow, FrameStatus } from '#contract'
import { Badge, type Tone } from '../../parts/badge.tsx'
import { Text } from '../../parts/text.tsx'
import { durationText } from '../../parts/time.tsx'

const tones: Readonly<Record<FrameStatus, Tone>> = {
  open: 'plain',
  ok: 'good',
  error: 'danger',
  'tool-error': 'danger',
  asks: 'warn',
}

const clock = new Intl.DateTimeFormat('en-GB', {
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  fractionalSecondDigits: 3,
})

/** `12:04:07.120`: frames lie closer together than seconds. */
export function fineTime(at: number): string {
  return clock.format(at)
}

/** `214 B`, `3.1 kB`. */
export function sizeText(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`
  return bytes < 1_000_000 ? `${(bytes / 1000).toFixed(1)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`
}

export function StatusBadge({ row }: { readonly row: FrameRow }): ReactNode {
  if (row.status === undefined) return row.kind === 'invalid' ? <Badge tone="danger">invalid</Badge> : null
  const code = row.code === undefined ? '' : ` ${row.code}`
  return <Badge tone={tones[row.status]}>{row.status.replace('-', ' ') + code}</Badge>
}

const columns =
  'grid grid-cols-[auto_1.2rem_minmax(0,1fr)_auto] md:grid-cols-[4rem_7rem_1.2rem_5rem_minmax(7rem,1fr)_minmax(0,1.6fr)_7.5rem_4.5rem_4.5rem]'

export function FrameHead(): ReactNode {
  const names = ['n', 'time', '', 'server', 'method', 'about', 'status', 'time taken', 'size']
  return (
    <div aria-hidden="true" className={`label hidden gap-x-3 border-b border-line px-3 py-1 md:grid ${columns}`}>
      {names.map(name => (
        <span key={name} className={name === 'time taken' || name === 'size' ? 'text-right' : ''}>
          {name}
        </span>
      ))}
    </div>
  )
}

export function FrameLine({ row }: { readonly row: FrameRow }): ReactNode {
  const { n, at, server, way, kind, method, about, ms, bytes, again } = row
  return (
    <div className={`items-baseline gap-x-3 px-3 py-1 font-mono text-[0.9rem] leading-5 ${columns}`}>
      <span className="hidden text-muted tabular-nums md:block">{n}</span>
      <span className="text-muted tabular-nums">{fineTime(at)}</span>
      <span title={way === 'out' ? 'to the server' : 'from the server'}>
        <span aria-hidden="true">{way === 'out' ? '→' : '←'}</span>
        <span className="sr-only">{way === 'out' ? 'to' : 'from'}</span>
      </span>
      <span className="hidden truncate md:block">
        <Text most={40}>{server}</Text>
      </span>
      <span className="truncate">
        <span className={kind === 'request' ? '' : 'text-muted'}>
          {method === undefined ? kind : <Text most={80}>{method}</Text>}
          {method !== undefined && kind !== 'request' && ` ${kind === 'notification' ? '' : kind}`}
        </span>
        {again !== undefined && <span className="text-muted"> (again)</span>}
      </span>
      <span className="hidden truncate text-muted md:block">{about !== undefined && <Text most={160}>{about}</Text>}</span>
      <span>
        <StatusBadge row={row} />
      </span>
      <span className="hidden text-right tabular-nums md:block">{ms === undefined ? '–' : durationText(ms)}</span>
      <span className="hidden text-right text-muted tabular-nums md:block">{sizeText(bytes)}</span>
    </div>
  )
}
