import de.bwaldvogel.mongo.MongoDatabase;
import de.bwaldvogel.mongo.backend.h2.H2Backend;
import de.bwaldvogel.mongo.bson.Document;
import de.bwaldvogel.mongo.wire.message.MongoMessage;
import java.util.List;
import org.h2.mvstore.MVStore;

/** The library's H2 backend with indexes that are used, counts that are right, and a store that can be committed before each reply. */
final class StandInBackend extends H2Backend {

    private final boolean commitEveryWrite;

    StandInBackend(MVStore store, boolean commitEveryWrite) {
        super(store);
        this.commitEveryWrite = commitEveryWrite;
    }

    /** Called by the superclass's constructor too, before this class's own field is set. */
    @Override
    protected MongoDatabase openOrCreateDatabase(String name) {
        return new StandInDatabase(name, getMvStore(), getCursorRegistry());
    }

    @Override
    public Document handleMessage(MongoMessage message) {
        try {
            Document response = super.handleMessage(message);
            if (response.containsKey("writeErrors") && message.getDocument().containsKey("insert")) {
                countInserted(message.getDocument(), response);
            }
            return response;
        } finally {
            if (commitEveryWrite && getMvStore().hasUnsavedChanges()) {
                commit();
            }
        }
    }

    /** The library answers with how many were sent; what was inserted is what came before the first error, or, unordered, all without one. */
    private static void countInserted(Document command, Document response) {
        List<?> errors = (List<?>) response.get("writeErrors");
        int sent = ((List<?>) command.get("documents")).size();
        boolean ordered = !Boolean.FALSE.equals(command.get("ordered"));
        response.put("n", ordered ? ((Document) errors.get(0)).get("index") : Integer.valueOf(sent - errors.size()));
    }
}
