/** The states of feature sets: their checkpoints as a tree in lanes, what each holds, what differs, and the way back. */
import { useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { type ReactNode, useEffect, useMemo } from 'react'
import type { StateSetRow } from '#contract'
import { stateSets, useStateTree } from '../../api/host-lists.ts'
import { type KeyMap, useKeys } from '../../frame/keys.ts'
import { Badge } from '../../parts/badge.tsx'
import { Waiting } from '../../parts/card.tsx'
import { ProblemCard } from '../../parts/problem.tsx'
import { spellOut, Text } from '../../parts/text.tsx'
import { CheckpointDetails } from './checkpoint-details.tsx'
import { CheckpointTree } from './checkpoint-tree.tsx'

export interface StateProps {
  readonly server: string | undefined
  readonly set: string | undefined
  /** The checkpoint that is opened. */
  readonly at: string | undefined
}

export function State({ server, set, at }: StateProps): ReactNode {
  const { data: sets, error, refetch } = useQuery(stateSets)
  const navigate = useNavigate()
  const first = sets?.[0]
  useEffect(() => {
    if (server !== undefined || first === undefined) return
    void navigate({ to: '/state/$server/$set', params: { server: first.server, set: first.featureSet }, replace: true })
  }, [server, first, navigate])
  const row = sets?.find(each => each.server === server && each.featureSet === set)
  if (error) {
    return (
      <div className="p-4">
        <ProblemCard error={error} retry={() => void refetch()} />
      </div>
    )
  }
  if (sets === undefined) {
    return (
      <div className="p-4">
        <Waiting rows={5} />
      </div>
    )
  }
  if (sets.length === 0) return <Nothing />
  return (
    <div className="flex h-full min-h-0 flex-col">
      <div className="flex flex-wrap items-center gap-3 border-b border-line px-4 py-2">
        <SetPicker sets={sets} row={row} />
        {row && (
          <span className="text-muted">
            {row.checkpoints.toLocaleString('en')} {row.checkpoints === 1 ? 'checkpoint' : 'checkpoints'}
          </span>
        )}
        {row && !row.rollsBack && <Badge>cannot go back</Badge>}
      </div>
      {row ? (
        <Tree key={`${row.server} ${row.featureSet}`} row={row} at={at} />
      ) : (
        server !== undefined && <p className="p-6 text-center text-muted">This feature set has no checkpoints.</p>
      )}
    </div>
  )
}

interface SetPickerProps {
  readonly sets: readonly StateSetRow[]
  readonly row: StateSetRow | undefined
}

function SetPicker({ sets, row }: SetPickerProps): ReactNode {
  const navigate = useNavigate()
  return (
    <select
      aria-label="Feature set"
      className="max-w-full min-w-0 font-semibold"
      value={row === undefined ? '' : String(sets.indexOf(row))}
      onChange={event => {
        const chosen = sets[Number(event.target.value)]
        if (chosen) void navigate({ to: '/state/$server/$set', params: { server: chosen.server, set: chosen.featureSet } })
      }}
    >
      {row === undefined && <option value="">Choose a feature set</option>}
      {sets.map((each, index) => (
        <option key={`${each.server} ${each.featureSet}`} value={index}>
          {spellOut(`${each.server} / ${each.featureSet}`)}
        </option>
      ))}
    </select>
  )
}

function Tree({ row, at }: { readonly row: StateSetRow; readonly at: string | undefined }): ReactNode {
  const { server, featureSet: set } = row
  const tree = useStateTree(server, set)
  const navigate = useNavigate()
  const nodes = tree.data ?? []
  const wide = matchMedia('(min-width: 1024px)').matches
  const opened =
    nodes.find(({ checkpoint }) => checkpoint === at) ??
    (wide && at === undefined ? nodes.find(({ current }) => current) : undefined)
  const keys = useMemo<KeyMap>(() => {
    const go = (search: object) => void navigate({ to: '/state/$server/$set', params: { server, set }, search, replace: true })
    return { Escape: () => go({}) }
  }, [server, set, navigate])
  useKeys(keys)
  const open = (checkpoint: string | undefined) =>
    void navigate({
      to: '/state/$server/$set',
      params: { server, set },
      search: checkpoint === undefined ? {} : { at: checkpoint },
      replace: true,
    })
  return (
    <div className="flex min-h-0 flex-1 flex-col lg:flex-row">
      <div className={`flex min-h-0 min-w-0 flex-1 flex-col lg:max-w-[34rem] ${at === undefined ? '' : 'max-lg:hidden'}`}>
        {tree.error && (
          <div className="p-3">
            <ProblemCard error={tree.error} retry={() => void tree.refetch()} />
          </div>
        )}
        {tree.isPending && (
          <div className="p-3">
            <Waiting rows={6} />
          </div>
        )}
        {tree.isSuccess && nodes.length === 0 && <p className="p-6 text-center text-muted">It has no checkpoints any more.</p>}
        {nodes.length > 0 && <CheckpointTree nodes={nodes} selected={opened?.checkpoint} select={open} />}
      </div>
      {opened && (
        <CheckpointDetails key={opened.checkpoint} row={row} node={opened} nodes={nodes} close={() => open(undefined)} />
      )}
      {at !== undefined && opened === undefined && tree.isSuccess && (
        <p className="flex-1 p-6 text-center text-muted">
          The checkpoint <Text most={100}>{at}</Text> is not there any more.
        </p>
      )}
    </div>
  )
}

function Nothing(): ReactNode {
  return (
    <p className="p-6 text-center text-muted">
      No feature set has a state.
      <br />A server whose feature set keeps state, or has the host keep it, shows a checkpoint here after each change.
    </p>
  )
}
