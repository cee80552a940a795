import { auditCases } from "../audit.cases.ts";
import { artifactCases, deviceArtifactCases } from "../catalog/artifacts.cases.ts";
import { firmwareCases } from "../catalog/firmware.cases.ts";
import { productCases } from "../catalog/products.cases.ts";
import { releaseCases, withdrawCases } from "../catalog/release.cases.ts";
import { draftDeletionCases, signingCases } from "../catalog/signing.cases.ts";
import { sourceUrlCases, storedArtifactCases } from "../catalog/stored-artifacts.cases.ts";
import { updateProductCases } from "../catalog/update-product.cases.ts";
import { badNeighbourCases } from "../check/bad-neighbour.cases.ts";
import { oddTextCases } from "../check/odd-texts.cases.ts";
import { changeUpgradeCases } from "../devices/change-upgrade.cases.ts";
import { deleteDeviceCases } from "../devices/delete-device.cases.ts";
import { deviceTokenCases } from "../devices/device-tokens.cases.ts";
import { deviceCases } from "../devices/devices.cases.ts";
import { gatewayTokenCases } from "../devices/gateway-tokens.cases.ts";
import { listDevicesCases } from "../devices/list-devices.cases.ts";
import { registerDevicesCases } from "../devices/register-devices.cases.ts";
import { upgradeCases } from "../devices/upgrades.cases.ts";
import { installationCases } from "../installation.cases.ts";
import { operatorKeyCases } from "../operators/operator-keys.cases.ts";
import { pageCases } from "../pages.cases.ts";
import { rolloutCases } from "../rollouts/rollouts.cases.ts";
import { settlingCases } from "../rollouts/settling.cases.ts";
import { constraintCases } from "../schema/constraints.cases.ts";
import { figureCases } from "../schema/figures.cases.ts";
import { retentionCases } from "../sweeper/retention.cases.ts";
import { sweeperCases } from "../sweeper/time-out-attempts.cases.ts";
import type { Cases } from "./databases.ts";

/** Every case that must hold on each kind of database. They share one database: opening PGlite takes seconds. */
export const RECORD_CASES: readonly Cases[] = [
  installationCases,
  productCases,
  updateProductCases,
  firmwareCases,
  releaseCases,
  withdrawCases,
  rolloutCases,
  settlingCases,
  artifactCases,
  deviceArtifactCases,
  signingCases,
  draftDeletionCases,
  sourceUrlCases,
  storedArtifactCases,
  deviceCases,
  deviceTokenCases,
  gatewayTokenCases,
  listDevicesCases,
  registerDevicesCases,
  deleteDeviceCases,
  upgradeCases,
  oddTextCases,
  badNeighbourCases,
  changeUpgradeCases,
  operatorKeyCases,
  auditCases,
  pageCases,
  constraintCases,
  figureCases,
  sweeperCases,
  retentionCases,
];
