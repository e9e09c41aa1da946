/** Goes back to a checkpoint once somebody has seen what changes by it. The server is asked first, and may refuse. */
import { useMutation, useQueryClient } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import type { StateNode, StateRolledBack, StateSetRow } from '#contract'
import { request } from '../../api/client.ts'
import { useDisconnected } from '../../frame/connection-banner.tsx'
import { Dialog } from '../../frame/dialog.tsx'
import { Button } from '../../parts/button.tsx'
import { ProblemCard } from '../../parts/problem.tsx'
import { Text } from '../../parts/text.tsx'

export interface RollbackDialogProps {
  readonly row: StateSetRow
  readonly to: StateNode
  readonly head: StateNode | undefined
  readonly close: () => void
  /** What changes by it. */
  readonly children: ReactNode
}

export function RollbackDialog({ row: { server, featureSet }, to, head, close, children }: RollbackDialogProps): ReactNode {
  const client = useQueryClient()
  const disconnected = useDisconnected()
  const rollback = useMutation({
    mutationFn: () =>
      request('POST /state/:server/:set/rollback', { path: { server, set: featureSet }, body: { to: to.checkpoint } }),
    onSettled: () => client.invalidateQueries({ queryKey: ['state'] }),
  })
  return (
    <Dialog label="Roll back" close={close}>
      <div className="flex max-h-[76vh] flex-col">
        <div className="min-h-0 flex-1 space-y-3 overflow-auto p-5">
          <h2 className="text-[1.14rem] font-semibold break-all">
            Roll back to <Text most={100}>{to.checkpoint}</Text>
          </h2>
          {rollback.data ? (
            <Outcome outcome={rollback.data} />
          ) : (
            <>
              <p>
                The server <Text most={100}>{server}</Text> is asked first. If it agrees, its feature set{' '}
                <Text most={100}>{featureSet}</Text> goes back{head && ' from '}
                {head && <Text most={100}>{head.checkpoint}</Text>}. Newer checkpoints stay as a branch.
              </p>
              {children}
            </>
          )}
          {rollback.error && <ProblemCard error={rollback.error} />}
        </div>
        <div className="flex justify-end gap-2 border-t border-line p-4">
          <Button onClick={close}>{rollback.data ? 'Close' : 'Stay'}</Button>
          {!rollback.data && (
            <Button look="danger" disabled={disconnected || rollback.isPending} onClick={() => rollback.mutate()}>
              {rollback.isPending ? 'Asking the server…' : 'Roll back'}
            </Button>
          )}
        </div>
      </div>
    </Dialog>
  )
}

function Outcome({ outcome: { success, head, hostOnly, why } }: { readonly outcome: StateRolledBack }): ReactNode {
  if (!success) {
    return (
      <div role="status" className="rounded-lg bg-warn-soft p-3 text-warn">
        <p>
          <strong>It was not rolled back.</strong> <Text most={1000}>{why?.message ?? 'The server refused.'}</Text>
        </p>
        {why && (
          <p>
            <Text most={1000}>{why.fix}</Text>
          </p>
        )}
      </div>
    )
  }
  return (
    <p role="status" className="rounded-lg bg-good-soft p-3 text-good">
      Rolled back. The head is <Text most={100}>{head ?? 'before the first checkpoint'}</Text> now.
      {hostOnly && ' The server does not know rollbacks: it gets the earlier state with its next call.'}
    </p>
  )
}
