import { artifactFile, artifactList } from "./artifacts.ts";
import { basePoll } from "./base-poll.ts";
import { cancelAction } from "./cancel.ts";
import { configData } from "./config-data.ts";
import { activate, confirmationAction, confirmationBase, confirmationFeedback, deactivate } from "./confirmation.ts";
import { deploymentBase, installedBase } from "./deployment.ts";
import { cancelFeedback, deploymentFeedback } from "./feedback.ts";
import type { DdiRoute } from "./route.ts";

/** hawkBit's DDI v1, the most frequent first. */
export const ddiRoutes: readonly DdiRoute[] = [
  basePoll,
  deploymentFeedback,
  deploymentBase,
  artifactFile,
  configData,
  cancelAction,
  cancelFeedback,
  installedBase,
  artifactList,
  confirmationBase,
  activate,
  deactivate,
  confirmationAction,
  confirmationFeedback,
];
