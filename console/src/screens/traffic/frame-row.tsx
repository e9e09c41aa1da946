/** A frame in the list: when, which way, what, how it went, how long, how large. */
import { memo, type ReactNode } from 'react'
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

/** By the width of the list, not of the page: a frame beside it takes half of that. */
const columns =
  'grid grid-cols-[auto_1.2rem_minmax(0,1fr)_auto] @min-[560px]:grid-cols-[3.4rem_7.6rem_1.2rem_5rem_minmax(0,1fr)_7.6rem_4rem] @min-[800px]:grid-cols-[3.4rem_7.6rem_1.2rem_5rem_minmax(9rem,1fr)_minmax(0,1.6fr)_7.6rem_4rem_4.5rem]'
const fromMiddle = 'hidden @min-[560px]:block'
const fromWide = 'hidden @min-[800px]:block'

export function FrameHead(): ReactNode {
  const names = [
    ['n', fromMiddle],
    ['time', ''],
    ['', ''],
    ['server', fromMiddle],
    ['method', ''],
    ['about', fromWide],
    ['status', ''],
    ['took', `text-right ${fromMiddle}`],
    ['size', `text-right ${fromWide}`],
  ]
  return (
    <div aria-hidden="true" className={`label gap-x-3 border-b border-line px-3 py-1 max-sm:hidden ${columns}`}>
      {names.map(([name, look]) => (
        <span key={name} className={look}>
          {name}
        </span>
      ))}
    </div>
  )
}

/** Drawn again only for another row: a list that scrolls draws each of its rows many times. */
export const FrameLine = memo(function FrameLine({ row }: { readonly row: FrameRow }): ReactNode {
  const { n, at, server, way, kind, method, about, ms, bytes, again } = row
  return (
    <div className={`items-baseline gap-x-3 px-3 py-1 font-mono text-[0.9rem] leading-5 ${columns}`}>
      <span className={`text-muted tabular-nums ${fromMiddle}`}>{n}</span>
      <span className="text-muted tabular-nums">{fineTime(at)}</span>
      <span title={way === 'out' ? 'to the server' : 'from the server'}>
        <span aria-hidden="true">{way === 'out' ? '→' : '←'}</span>
        <span className="sr-only">{way === 'out' ? 'to' : 'from'}</span>
      </span>
      <span className={`truncate ${fromMiddle}`}>
        <Text most={40}>{server}</Text>
      </span>
      <span className="truncate">
        <span className={kind === 'request' ? '' : 'text-muted'}>
          {method === undefined ? kind : <Text most={80}>{method}</Text>}
          {method !== undefined && kind !== 'request' && ` ${kind === 'notification' ? '' : kind}`}
        </span>
        {again !== undefined && <span className="text-muted"> (again)</span>}
      </span>
      <span className={`truncate text-muted ${fromWide}`}>{about !== undefined && <Text most={160}>{about}</Text>}</span>
      <span>
        <StatusBadge row={row} />
      </span>
      <span className={`text-right tabular-nums ${fromMiddle}`}>{ms === undefined ? '–' : durationText(ms)}</span>
      <span className={`text-right text-muted tabular-nums ${fromWide}`}>{sizeText(bytes)}</span>
    </div>
  )
})
