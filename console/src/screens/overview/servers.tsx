/** The servers with their status and figures. On narrow pages each is a card. */
import type { ReactNode } from 'react'
import type { ServerRow, ServerStatus } from '#contract'
import { Badge, type Tone } from '../../parts/badge.tsx'
import { Text } from '../../parts/text.tsx'
import { durationText } from '../../parts/time.tsx'
import type { Figures } from '../../pictures/buckets.ts'

const tones: Readonly<Record<ServerStatus, Tone>> = { up: 'good', connecting: 'plain', down: 'danger', refused: 'danger' }
const marks: Readonly<Record<ServerStatus, string>> = { up: '●', connecting: '◌', down: '✕', refused: '✕' }

export interface ServersProps {
  readonly servers: readonly ServerRow[]
  readonly figures: ReadonlyMap<string, Figures>
  readonly selected: string | undefined
  readonly select: (name: string) => void
}

export function Servers({ servers, figures, selected, select }: ServersProps): ReactNode {
  if (servers.length === 0) return <p className="text-muted">The configuration names no servers.</p>
  return (
    <table className="block w-full text-left sm:table">
      <thead className="hidden text-[0.86rem] text-muted sm:table-header-group">
        <tr>
          {['Server', 'Status', 'Revision', 'Offers', 'Calls', 'p50', 'p95', 'Failed'].map(title => (
            <th key={title} scope="col" className="px-2 pb-1.5 font-semibold first:pl-0">
              {title}
            </th>
          ))}
        </tr>
      </thead>
      <tbody className="block sm:table-row-group">
        {servers.map(server => (
          <tr
            key={server.name}
            className={`flex flex-wrap items-center gap-x-3 gap-y-1 border-t border-line py-2 sm:table-row ${server.name === selected ? 'bg-accent-soft' : ''}`}
          >
            <th scope="row" className="font-semibold sm:py-2 sm:pr-2">
              <button
                type="button"
                aria-pressed={server.name === selected}
                className="min-h-6 underline"
                onClick={() => select(server.name)}
              >
                <Text most={60}>{server.name}</Text>
              </button>
            </th>
            <td className="sm:p-2">
              <Badge tone={tones[server.status]}>
                <span aria-hidden="true">{marks[server.status]} </span>
                {server.status}
              </Badge>
            </td>
            <Cells server={server} figures={figures.get(server.name)} />
          </tr>
        ))}
      </tbody>
    </table>
  )
}

function Cells({ server, figures }: { readonly server: ServerRow; readonly figures: Figures | undefined }): ReactNode {
  if (server.why !== undefined && server.status !== 'up') {
    return (
      <td colSpan={6} className="w-full sm:w-auto sm:p-2">
        <Text most={300}>{server.why.message}</Text>{' '}
        <span className="text-muted">
          <Text most={300}>{server.why.fix}</Text>
        </span>
      </td>
    )
  }
  const { calls = 0, failures = 0, p50, p95 } = figures ?? {}
  const offered = [plural(server.tools, 'tool'), plural(server.resources, 'resource'), plural(server.prompts, 'prompt')]
  return (
    <>
      <td className="whitespace-nowrap text-muted sm:p-2">{[server.revision, server.carrier].filter(Boolean).join(' · ')}</td>
      <td className="sm:p-2">
        {offered.filter(Boolean).join(', ') || '–'}
        {server.held > 0 && (
          <>
            {' '}
            <Badge tone="warn">{server.held} held</Badge>
          </>
        )}
      </td>
      <td className="tabular-nums sm:p-2">
        <Narrow>calls</Narrow> {calls.toLocaleString('en')}
      </td>
      <td className="whitespace-nowrap tabular-nums sm:p-2">
        <Narrow>p50</Narrow> {p50 === undefined ? '–' : durationText(p50)}
      </td>
      <td className="whitespace-nowrap tabular-nums sm:p-2">
        <Narrow>p95</Narrow> {p95 === undefined ? '–' : durationText(p95)}
      </td>
      <td className="tabular-nums sm:p-2">
        <Narrow>failed</Narrow> {calls === 0 ? '–' : `${((failures / calls) * 100).toFixed(failures > 0 ? 1 : 0)} %`}
      </td>
    </>
  )
}

/** The column's title, where a server is a card without a head. */
function Narrow({ children }: { readonly children: string }): ReactNode {
  return <span className="text-muted sm:hidden">{children}</span>
}

function plural(count: number, word: string): string {
  return count === 0 ? '' : `${count.toLocaleString('en')} ${word}${count === 1 ? '' : 's'}`
}
