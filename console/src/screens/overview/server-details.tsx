/** One server: why it is as it is, what it offers, what it wrote to standard error, and a way to connect it again. */
import { useMutation } from '@tanstack/react-query'
import { type ReactNode, useState } from 'react'
import type { ServerDetail } from '#contract'
import { request } from '../../api/client.ts'
import { useServer } from '../../api/lists.ts'
import { useDisconnected } from '../../frame/connection-banner.tsx'
import { useRole } from '../../frame/context.ts'
import { Button } from '../../parts/button.tsx'
import { Card } from '../../parts/card.tsx'
import { ProblemCard } from '../../parts/problem.tsx'
import { ScrollRegion } from '../../parts/scroll-region.tsx'
import { Text } from '../../parts/text.tsx'
import { timeText } from '../../parts/time.tsx'

export function ServerDetails({ name, close }: { readonly name: string; readonly close: () => void }): ReactNode {
  const server = useServer(name)
  const operator = useRole('operator')
  const disconnected = useDisconnected()
  const retry = useMutation({ mutationFn: () => request('POST /servers/:name/retry', { path: { name } }) })
  return (
    <Card title={`Server ${name}`} query={server}>
      {server.data && (
        <div className="space-y-4">
          {server.data.why && (
            <p>
              <Text>{server.data.why.message}</Text>{' '}
              <span className="text-muted">
                <Text>{server.data.why.fix}</Text>
              </span>
            </p>
          )}
          {retry.error && <ProblemCard error={retry.error} />}
          <Offered server={server.data} />
          {server.data.leftOut.length > 0 && (
            <section>
              <h3 className="label mb-1">Not offered</h3>
              <ul className="list-disc space-y-1 pl-5">
                {server.data.leftOut.map(({ message, fix }) => (
                  <li key={message}>
                    <Text>{message}</Text>{' '}
                    <span className="text-muted">
                      <Text>{fix}</Text>
                    </span>
                  </li>
                ))}
              </ul>
            </section>
          )}
          <section>
            <h3 className="label mb-1">Standard error</h3>
            {server.data.stderr.length === 0 ? (
              <p className="text-muted">Silent since the start.</p>
            ) : (
              <ScrollRegion label={`Standard error of ${name}`} className="max-h-64">
                {server.data.stderr.map(({ at, text }, index) => (
                  <div key={index}>
                    <span className="text-muted">{timeText(at)} </span>
                    <Text most={4000}>{text}</Text>
                  </div>
                ))}
              </ScrollRegion>
            )}
          </section>
          <div className="flex gap-2">
            {operator && server.data.status === 'down' && (
              <Button look="primary" disabled={disconnected || retry.isPending} onClick={() => retry.mutate()}>
                Connect again
              </Button>
            )}
            <Button onClick={close}>Close</Button>
          </div>
        </div>
      )}
    </Card>
  )
}

/** How many names are listed before the reader asks for all. */
const few = 40

function Offered({ server }: { readonly server: ServerDetail }): ReactNode {
  const [all, setAll] = useState(false)
  if (server.items.length === 0) return null
  const shown = all ? server.items : server.items.slice(0, few)
  return (
    <section>
      <h3 className="label mb-1">Offers</h3>
      <ul className="flex flex-wrap gap-1.5">
        {shown.map(({ kind, name, own }) => (
          <li
            key={`${kind} ${name}`}
            className="max-w-full truncate rounded bg-hover px-1.5"
            title={own === name ? kind : `${kind} ${own} of the server`}
          >
            <Text most={120}>{name}</Text>
          </li>
        ))}
      </ul>
      {server.items.length > few && (
        <Button look="quiet" className="mt-1" onClick={() => setAll(!all)}>
          {all ? 'Show fewer' : `Show all ${server.items.length.toLocaleString('en')}`}
        </Button>
      )}
    </section>
  )
}
